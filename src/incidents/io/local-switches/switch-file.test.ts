import assert from 'node:assert/strict'
import {
  chmodSync,
  chownSync,
  existsSync,
  lchownSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import process from 'node:process'
import { type TestContext, test } from 'node:test'
import { type LocalSwitch, readSwitchFile, removeSwitch, switchDirectory, writeSwitch } from './switch-file.ts'

const GATEWAY = 65_534
const asRoot = { skip: process.getuid?.() === 0 ? false : 'needs root' }
const FREEZE: LocalSwitch = {
  cluster: 'prod',
  mode: 'Freeze',
  reason: 'INC-1',
  expiresAt: '',
  shadow: false,
  by: 'root',
  at: '2030-01-01T00:00:00Z',
}

/** A data directory owned by the gateway's user, and one that only root may write. */
function directories(t: TestContext): { readonly dataDir: string; readonly roots: string } {
  const base = mkdtempSync(join(tmpdir(), 'portcullis-switch-'))
  t.after(() => rmSync(base, { recursive: true }))
  chmodSync(base, 0o755)
  const dirs = { dataDir: join(base, 'data'), roots: join(base, 'manifests') }
  for (const dir of Object.values(dirs)) mkdirSync(dir)
  chownSync(dirs.dataDir, GATEWAY, GATEWAY)
  return dirs
}

test('root cannot be led out of the data directory by the user whose it is', asRoot, (t) => {
  const { dataDir, roots } = directories(t)
  symlinkSync(roots, switchDirectory(dataDir))
  lchownSync(switchDirectory(dataDir), GATEWAY, GATEWAY)
  assert.throws(() => writeSwitch(dataDir, FREEZE), /EACCES/)
  assert.ok(!existsSync(join(roots, 'prod.yaml')))
  writeFileSync(join(roots, 'prod.yaml'), '')
  assert.throws(() => removeSwitch(dataDir, 'prod'), /EACCES/)
  assert.ok(existsSync(join(roots, 'prod.yaml')))
  assert.deepEqual([process.geteuid?.(), process.getegid?.()], [0, 0])
})

test(
  'what root throws belongs to the user of the gateway, also where the data directory is a symbolic link',
  asRoot,
  (t) => {
    const { dataDir } = directories(t)
    const link = `${dataDir}-link`
    symlinkSync(dataDir, link)
    const file = writeSwitch(link, FREEZE)
    for (const path of [switchDirectory(dataDir), file]) assert.equal(lstatSync(path).uid, GATEWAY)
    assert.deepEqual(readSwitchFile(switchDirectory(dataDir), 'prod.yaml', GATEWAY), { local: FREEZE })
    assert.ok(removeSwitch(link, 'prod'))
  },
)
