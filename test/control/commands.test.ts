// `portcullis control revoke` and `rotate-key` on the data directory of a gateway, while it runs and while it does not.

import assert from 'node:assert/strict'
import { copyFileSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { after, before, test } from 'node:test'
import { parse } from 'yaml'
import { controlRevoke } from '../../src/apiserver/cli/revoke.ts'
import { openKeyedStore } from '../../src/apiserver/io/store/keyed-store.ts'
import { controlPaths } from '../../src/gateway/io/listener/control-paths.ts'
import type { KeyPair } from '../../src/pki/io/pki.ts'
import { type ControlClient, secret, UC } from '../harness/clients/control-client.ts'
import type { AuditedRequest } from '../harness/gateways/control.ts'
import { type CliResult, type EmbeddedGateway, runCli, startEmbedded } from '../harness/gateways/embedded.ts'
import { waitFor } from '../harness/wait.ts'

const REVOKED = '/apis/portcullis.io/v1alpha1/revokedcredentials'
const SECRETS = '/api/v1/namespaces/default/secrets'
const dir = mkdtempSync(join(tmpdir(), 'portcullis-control-commands-'))
let embedded: EmbeddedGateway

before(async () => {
  embedded = await startEmbedded({ args: [`--control-audit-log-path=${join(dir, 'audit')}`] })
})
after(async () => {
  await embedded.stop()
  rmSync(dir, { recursive: true })
})

const control = (...args: readonly string[]): Promise<CliResult> =>
  runCli(['control', args[0] ?? '', '--data-dir', embedded.dataDir, ...args.slice(1)])
const revoke = (...args: readonly string[]): Promise<CliResult> => control('revoke', ...args)

interface Issued {
  /** A kubeconfig. */
  readonly file: string
  readonly client: () => ControlClient
}

let issued = 0
async function issue(user: string, ...args: readonly string[]): Promise<Issued> {
  const { stdout, stderr, code } = await control('kubeconfig', '--user', user, '--group', 'portcullis:admins', ...args)
  assert.equal(code, 0, stderr)
  const file = join(dir, `${user}-${issued++}.kubeconfig`)
  writeFileSync(file, stdout)
  const { token, ...data } = parse(stdout).users[0].user
  const decoded = (field: string): string => Buffer.from(data[field] ?? '', 'base64').toString()
  const cert: KeyPair = { certPem: decoded('client-certificate-data'), keyPem: decoded('client-key-data') }
  return { file, client: () => embedded.clientOf(token === undefined ? { cert } : { token }) }
}

async function codeOf({ client }: Issued): Promise<number> {
  return (await client().get(UC)).code
}

test('while it runs: in force when the command ends, on open connections and watches, and for good', async () => {
  const vera = await issue('vera')
  const bot = await issue('bot', '--token-ttl', '1h')
  const other = await issue('vera')
  const open = vera.client()
  const watch = await open.watch(`${UC}?watch=1`)
  assert.equal(watch.code, 200)
  const byFile = await revoke('--certificate', vera.file, '--reason', 'INC-1')
  assert.deepEqual([byFile.code, byFile.stderr], [0, ''])
  assert.match(
    byFile.stdout,
    /^the certificate of CN=vera, O=portcullis:admins .* is revoked \(RevokedCredential certificate-[0-9a-f]{64}\)\n$/,
  )
  await watch.end()
  assert.equal((await open.get(UC)).code, 401)
  assert.deepEqual([await codeOf(vera), await codeOf(other)], [401, 200])

  assert.equal((await revoke('--token-file', bot.file)).code, 0)
  assert.equal(await codeOf(bot), 401)
  assert.match(
    (await revoke('--token-file', bot.file)).stdout,
    /^the token of "bot" \(JTI=[0-9a-f-]{36}\), user "[^"]+" of \S+ was revoked already/,
  )
  assert.match((await revoke('--user', 'vera')).stdout, /^user "vera" is revoked \(RevokedCredential user-vera\)\n$/)
  assert.equal(await codeOf(other), 401)

  const list = await revoke('--list')
  assert.match(list.stdout, /^NAME +WHO +SINCE +REASON\n/)
  assert.match(
    list.stdout,
    /certificate-[0-9a-f]{64} +CN=vera, O=portcullis:admins \(SHA-256 [0-9a-f]{64}\) +20\S+Z +INC-1\n/,
  )
  assert.match(list.stdout, /user-vera +user vera +20/)
  const seen = await embedded.admin.get(REVOKED)
  assert.equal(seen.json.items.length, 3)

  await embedded.restart()
  assert.deepEqual([await codeOf(vera), await codeOf(other), await codeOf(bot)], [401, 401, 401])
  const back = await revoke('--user', 'vera', '--undo')
  assert.equal(back.stdout, 'user "vera" is no longer revoked\n')
  assert.deepEqual([await codeOf(vera), await codeOf(other)], [401, 200])
  const again = await revoke('--user', 'vera', '--undo')
  assert.deepEqual([again.code, again.stderr], [1, 'error: there is no RevokedCredential user-vera; see --list\n'])
})

/** The first event that satisfies `matches`, once it is written. */
function audited(what: string, matches: (event: AuditedRequest) => boolean): Promise<AuditedRequest> {
  return waitFor(what, () => {
    const lines = readFileSync(join(dir, 'audit'), 'utf8').split('\n').slice(0, -1)
    return lines.map((line): AuditedRequest => JSON.parse(line)).find(matches)
  })
}

test('twice in the same second: the second time it is reported as existing', async () => {
  const said: string[] = []
  const now = Date.now()
  const options = { dataDir: embedded.dataDir, user: 'twice', list: false, force: false, now: () => now }
  const output = { out: (text: string) => void said.push(text), err: (text: string) => void said.push(text) }
  for (const undo of [false, false, true]) assert.equal(await controlRevoke({ ...options, ...output, undo }), 0)
  assert.match(said[0] ?? '', /is revoked/)
  assert.match(said[1] ?? '', /was revoked already/)
})

test('the user is in the audit log', async () => {
  const of = (wanted: string) => (event: AuditedRequest) =>
    event.verb === wanted && event.objectRef.resource === 'revokedcredentials' && event.objectRef.name === 'user-vera'
  const made = await audited('the revocation', of('create'))
  assert.match(made.user.username, /^portcullis:local:./)
  await audited('its end', of('delete'))
})

test('a credential that is in no file is revoked by its id in the audit log', async () => {
  const carol = await issue('carol', '--token-ttl', '1h')
  const { headers } = await carol.client().get(UC)
  const event = await audited('the request', ({ auditID }) => auditID === headers['audit-id'])
  const [credential] = event.user.extra['authentication.kubernetes.io/credential-id']
  assert.equal((await revoke('--credential-id', credential)).code, 0)
  assert.equal(await codeOf(carol), 401)
})

test('no administrator locks themselves out by accident', async () => {
  const own = join(embedded.dataDir, 'control/pki/admin.crt')
  for (const args of [
    ['--user', 'portcullis-admin'],
    ['--certificate', own],
    ['--certificate', embedded.kubeconfig],
  ]) {
    const { code, stdout, stderr } = await revoke(...args)
    assert.deepEqual([code, stdout], [1, ''], args.join(' '))
    assert.match(
      stderr,
      /is the administrator of .*admin\.kubeconfig, the one credential .*; make another one first .* --force\n$/,
    )
  }
  assert.equal((await embedded.admin.get(UC)).code, 200)
  assert.equal((await revoke('--user', 'portcullis-admin', '--force')).code, 0)
  assert.equal((await embedded.admin.get(UC)).code, 401)
  // An administrator with the data directory always gets back in.
  assert.equal((await revoke('--user', 'portcullis-admin', '--undo')).code, 0)
  assert.equal((await embedded.admin.get(UC)).code, 200)
})

test('errors are one line each', async () => {
  const rows: readonly (readonly [readonly string[], RegExp])[] = [
    [[], /^error: no user or credential is named; give one of --user/],
    [['--user', 'a', '--token-file', 'b'], /^error: more than one is named/],
    [['--user', ''], /^error: spec.user is empty/],
    [['--user', 'system:anonymous'], /^error: spec.user has no credential/],
    [['--credential-id', 'abc'], /^error: spec.credentialID is not a valid credential-id/],
    [['--certificate', join(dir, 'audit')], /^error: .* holds no PEM certificate/],
    [['--token-file', join(dir, 'nowhere')], /^error: cannot read/],
  ]
  for (const [args, message] of rows) {
    const { code, stderr } = await revoke(...args)
    assert.equal(code, 1, args.join(' '))
    assert.match(stderr, message)
    assert.equal(stderr.split('\n').length, 2, stderr)
  }
  const damaged = join(dir, 'damaged')
  const { store: file, storeKey: keyFile } = controlPaths(damaged)
  const store = openKeyedStore({ file, keyFile })
  store.write([{ resource: 'revokedcredentials.portcullis.io', namespace: '', name: 'a', object: {}, expected: 0 }])
  store.close()
  const db = new DatabaseSync(file)
  db.exec("UPDATE bodies SET body = '{'")
  db.close()
  const broken = await runCli(['control', 'revoke', '--data-dir', damaged, '--list'])
  assert.match(broken.stderr, /^error: the store .* is damaged .*; keep a copy of its files first\n$/)
  const nowhere = await runCli(['control', 'revoke', '--data-dir', join(dir, 'none'), '--list'])
  assert.match(nowhere.stderr, /^error: there is no store of an embedded API server in /)
  assert.ok(!existsSync(join(dir, 'none')))
})

test('while it does not run: in force from the start on; backups have it', async () => {
  const dora = await issue('dora')
  const emil = await issue('emil')
  const backup = join(dir, 'backup.db')
  await stopped(async () => {
    const { code, stdout, stderr } = await revoke('--certificate', dora.file)
    assert.equal(code, 0, stderr)
    assert.match(stdout, /is revoked from the next start on/)
    assert.match((await revoke('--list')).stdout, /CN=dora/)
    assert.equal((await control('backup', backup)).code, 0)
    assert.equal((await revoke('--user', 'emil')).code, 0)
  })
  assert.deepEqual([await codeOf(dora), await codeOf(emil)], [401, 401])
  await stopped(async () => {
    for (const end of ['', '-wal', '-shm']) rmSync(join(embedded.dataDir, `control/objects.db${end}`), { force: true })
    copyFileSync(backup, join(embedded.dataDir, 'control/objects.db'))
  })
  // As of the backup.
  assert.deepEqual([await codeOf(dora), await codeOf(emil)], [401, 200])
  const { json } = await embedded.admin.get(`${REVOKED}?limit=500`)
  assert.ok(json.items.some(({ spec }: { spec: { subject?: string } }) => spec.subject?.includes('CN=dora')))
})

test('rotate-key: refused while it runs, and then everything is there under the new key', async () => {
  assert.equal((await embedded.admin.post(SECRETS, secret('kept', { stringData: { a: 'b' } }))).code, 201)
  const keyFile = join(embedded.dataDir, 'control/store.key')
  const old = readFileSync(keyFile, 'utf8')
  const refused = await control('rotate-key')
  assert.deepEqual([refused.code, refused.stdout], [1, ''])
  assert.match(
    refused.stderr,
    /^error: the store .* is in use: its key cannot be changed while the gateway runs; stop the gateway, .*\n$/,
  )
  assert.equal(readFileSync(keyFile, 'utf8'), old)
  await stopped(async () => {
    const { code, stdout, stderr } = await control('rotate-key')
    assert.equal(code, 0, stderr)
    assert.match(
      stdout,
      /^[1-9][0-9]* objects, old versions included, are encrypted with key [0-9a-f]{8} in .*store\.key\n/,
    )
    assert.match(stdout, /backups made so far need .*store\.key\.old-[0-9a-f]{8}: keep it with them, not here\n$/)
  })
  assert.notEqual(readFileSync(keyFile, 'utf8'), old)
  assert.equal((await embedded.admin.get(`${SECRETS}/kept`)).json.data.a, 'Yg==')
})

/** Runs `action` while the gateway does not run. */
async function stopped(action: () => Promise<void>): Promise<void> {
  let failure: unknown
  await embedded.restart('SIGTERM', async () => {
    await action().catch((error: unknown) => {
      failure = error
    })
  })
  if (failure !== undefined) throw failure
}
