// Keys that are ready: each process gets each once, and new ones after that.

import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { after, test } from 'node:test'
import { pathToFileURL } from 'node:url'
import { PATIENT } from '../harness/patience.ts'
import { readyKeys } from '../harness/ready-keys.ts'

const ROOT = resolve(import.meta.dirname, '../..')
const dir = mkdtempSync(join(tmpdir(), 'portcullis-keys-'))
after(() => rmSync(dir, { recursive: true, force: true }))

test('a test process gets each key once, then new ones; what it starts makes its own', PATIENT, async () => {
  const file = join(dir, 'keys.json')
  const variables = await readyKeys(file)
  const ready = (JSON.parse(readFileSync(file, 'utf8')) as { privateKey: string }[]).map(({ privateKey }) => privateKey)
  assert.equal(new Set(ready).size, ready.length)
  const pki = pathToFileURL(join(ROOT, 'src/pki/io/pki.ts')).href
  const ask = (count: number): string =>
    `import { generateKey } from ${JSON.stringify(pki)}
const keys = Array.from({ length: ${count} }, generateKey)`
  const inner = `${ask(1)}\nprocess.stdout.write(JSON.stringify(keys))`
  const script = `import { execFileSync } from 'node:child_process'
${ask(ready.length + 1)}
const started = execFileSync(process.execPath, [...process.execArgv.slice(0, 2), '--input-type=module', '-e', ${JSON.stringify(inner)}])
process.stdout.write(JSON.stringify([...keys, ...JSON.parse(String(started))]))`
  const flags = ['--import', './test/harness/ready-keys.ts', '--input-type=module', '-e', script]
  const env = { ...process.env, ...variables }
  const keys: string[] = JSON.parse(execFileSync(process.execPath, flags, { cwd: ROOT, env, encoding: 'utf8' }))
  assert.deepEqual(keys.slice(0, ready.length), ready)
  assert.equal(new Set(keys).size, ready.length + 2)
})
