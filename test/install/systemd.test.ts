// The units of deploy/systemd, by systemd's own checks: that it understands every line, and how much of the machine is left exposed.

import assert from 'node:assert/strict'
import { type SpawnSyncReturns, spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { parseDuration } from '../../src/kit/core/text/duration.ts'
import { ALL_SETTINGS } from '../../src/process/config/config.ts'

const UNITS = join(import.meta.dirname, '../../deploy/systemd')
const SERVICE = readFileSync(join(UNITS, 'portcullis.service'), 'utf8')
const SOCKET = readFileSync(join(UNITS, 'portcullis.socket'), 'utf8')
/** In tenths, as `systemd-analyze security` takes it: 1.5 of 10, "OK". */
const MAX_EXPOSURE = 15
const dir = mkdtempSync(join(tmpdir(), 'portcullis-systemd-'))
after(() => rmSync(dir, { recursive: true, force: true }))

function analyze(args: readonly string[], service = SERVICE, socket = SOCKET): SpawnSyncReturns<string> {
  // It looks for the program, which is not installed here.
  const installed = service.replaceAll('=portcullis ', '=/bin/true ')
  writeFileSync(join(dir, 'portcullis.service'), installed)
  writeFileSync(join(dir, 'portcullis.socket'), socket)
  return spawnSync('systemd-analyze', args, { cwd: dir, encoding: 'utf8' })
}

const verify = (service?: string): SpawnSyncReturns<string> =>
  analyze(['verify', '--man=no', '--recursive-errors=no', './portcullis.service', './portcullis.socket'], service)
const security = (service?: string): SpawnSyncReturns<string> =>
  analyze(['security', '--offline=yes', '--no-pager', `--threshold=${MAX_EXPOSURE}`, './portcullis.service'], service)

/** The last of a key, as systemd takes it. */
function valueOfKey(key: string): string {
  return [...SERVICE.matchAll(new RegExp(`^${key}=(.*)$`, 'gm'))].at(-1)?.[1] ?? ''
}

test('systemd understands every line', () => {
  const { status, stdout, stderr } = verify()
  assert.deepEqual([status, stdout, stderr], [0, '', ''])
  const wrong = verify(SERVICE.replace('RestartSec=', 'RestartSecs='))
  assert.match(wrong.stderr, /Unknown key 'RestartSecs'/)
})

test('its exposure is low, and each line that holds it down counts', () => {
  const { status, stdout } = security()
  assert.equal(status, 0, stdout.slice(-400))
  for (const line of ['User=portcullis', 'CapabilityBoundingSet=', 'SystemCallFilter=@system-service']) {
    const [key = ''] = line.split('=')
    const exposed = SERVICE.replace(new RegExp(`^${key}=.*$`, 'gm'), '')
    assert.notEqual(security(exposed).status, 0, `${key} is what keeps it low`)
  }
})

test('its times fit each other and the defaults of the gateway', () => {
  const seconds = (text: string): number => (/^\d+$/.test(text) ? Number(text) : (parseDuration(text) ?? 0) / 1000)
  const defaultOf = (flag: string): number => seconds(ALL_SETTINGS.find((one) => one.flag === flag)?.defaultText ?? '')
  const wait = /--wait (\S+)/.exec(valueOfKey('ExecStartPost'))?.[1] ?? ''
  assert.ok(
    seconds(valueOfKey('TimeoutStartSec')) > seconds(wait),
    'the probe says what is missing before systemd gives up',
  )
  const drain = defaultOf('--drain-timeout')
  assert.ok(drain > 0)
  assert.ok(seconds(valueOfKey('TimeoutStopSec')) > drain + defaultOf('--shutdown-delay') + 5)
})

test('the data directory of the program is the state directory of the unit', () => {
  assert.match(SERVICE, new RegExp(`^Environment=PORTCULLIS_DATA_DIR=/var/lib/${valueOfKey('StateDirectory')}$`, 'm'))
})

test('every kernel setting exists', () => {
  const lines = readFileSync(join(UNITS, 'portcullis.sysctl.conf'), 'utf8').split('\n')
  const keys = lines.flatMap((line) => /^([a-z0-9_.]+) = /.exec(line)?.[1] ?? [])
  assert.ok(keys.length > 2)
  for (const key of keys) assert.ok(existsSync(`/proc/sys/${key.replaceAll('.', '/')}`), key)
})

test('the user of the unit is made by systemd-sysusers', () => {
  mkdirSync(join(dir, 'etc'))
  const { status, stderr } = spawnSync('systemd-sysusers', [`--root=${dir}`, join(UNITS, 'portcullis.sysusers.conf')], {
    encoding: 'utf8',
  })
  assert.equal(status, 0, stderr)
  const user = valueOfKey('User')
  assert.match(
    readFileSync(join(dir, 'etc/passwd'), 'utf8'),
    new RegExp(`^${user}:.*:/var/lib/portcullis:\\S*nologin$`, 'm'),
  )
})
