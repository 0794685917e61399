import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { test } from 'node:test'
import { tarOf } from './tar.ts'

test('tar reads what is written', () => {
  const files = [
    { name: 'empty', text: '' },
    { name: 'block', text: 'x'.repeat(512), mode: 0o755 },
    { name: 'main.cpuprofile', text: `{"grün":"${'y'.repeat(1000)}"}` },
  ]
  const tar = tarOf(files, 1_700_000_000)
  assert.equal(tar.length % 512, 0)
  for (const { name, text } of files) {
    assert.equal(String(execFileSync('tar', ['-xOf', '-', name], { input: tar })), text)
  }
  assert.match(String(execFileSync('tar', ['-tvf', '-'], { input: tar })), /^-rw-------.* 2023-11-14.* empty$/m)
  assert.match(String(execFileSync('tar', ['-tvf', '-'], { input: tar })), /^-rwxr-xr-x.* block$/m)
})
