import assert from 'node:assert/strict'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { gunzipSync } from 'node:zlib'
import { openLineWriter } from './line-writer.ts'

const LINE = 'x'.repeat(1000)
const DAY_MS = 86_400_000
const NOW = Date.UTC(2026, 10, 23, 5, 0, 0)

async function written(lines: number, options: object, before: readonly string[] = []): Promise<Map<string, string>> {
  const folder = mkdtempSync(join(tmpdir(), 'rotation-'))
  try {
    for (const name of before) writeFileSync(join(folder, name), 'old\n')
    let errors = ''
    const rotation = { maxBytes: 200_000, maxAgeMs: 0, maxFiles: 0, compress: false, now: () => NOW, ...options }
    const writer = openLineWriter(join(folder, 'audit.log'), { rotation, onError: (error) => (errors += error) })
    for (let i = 0; i < lines; i++) {
      writer.write(`${i} ${LINE}`)
      if (i % 100 === 0) await writer.flush()
    }
    await writer.close()
    assert.equal(errors, '')
    assert.equal(writer.dropped(), 0)
    const read = (name: string): string => {
      const bytes = readFileSync(join(folder, name))
      return (name.endsWith('.gz') ? gunzipSync(bytes) : bytes).toString()
    }
    return new Map(readdirSync(folder).map((name) => [name, read(name)]))
  } finally {
    rmSync(folder, { recursive: true })
  }
}

/** Rotated files in order, then the current one. */
function linesOf(files: ReadonlyMap<string, string>): string[] {
  const names = [...files.keys()].sort((a, b) => (a === 'audit.log' ? 1 : b === 'audit.log' ? -1 : a < b ? -1 : 1))
  return names.flatMap((name) => (files.get(name) ?? '').split('\n').slice(0, -1))
}

for (const compress of [false, true]) {
  test(`rotation loses and cuts no line, ${compress ? 'also compressed' : 'uncompressed'}`, async () => {
    const files = await written(2000, { compress })
    assert.ok(files.size > 9, `${files.size} files`)
    assert.deepEqual(
      linesOf(files),
      Array.from({ length: 2000 }, (_, i) => `${i} ${LINE}`),
    )
    for (const [name, text] of files) {
      assert.ok(text.length <= 200_000, `${name} has ${text.length} bytes`)
      if (name !== 'audit.log') assert.match(name, /^audit-2026-11-23T05-00-00\.\d{3}\.log(\.gz)?$/)
      assert.equal(name.endsWith('.gz'), compress && name !== 'audit.log')
    }
  })
}

test('old files are removed by number, and others stay', async () => {
  const before = ['audit-2020-01-01T00-00-00.000.log.gz', 'audit-other.log', 'else.log']
  const kept = before.slice(0, 1).map(() => 'audit-other.log')
  const files = await written(2000, { maxFiles: 3 }, before.slice(1))
  const rotated = [...files.keys()].filter((name) => name.startsWith('audit-2'))
  assert.equal(rotated.length, 3)
  for (const name of [...kept, 'else.log']) assert.equal(files.get(name), 'old\n')
  assert.equal(
    linesOf(new Map([...files].filter(([name]) => rotated.includes(name) || name === 'audit.log'))).at(-1),
    `1999 ${LINE}`,
  )
})

test('old files are removed by age', async () => {
  const young = new Date(NOW - DAY_MS).toISOString().slice(0, -1).replaceAll(':', '-')
  const before = ['audit-2020-01-01T00-00-00.000.log', `audit-${young}.log`]
  const files = await written(500, { maxAgeMs: 2 * DAY_MS }, before)
  assert.equal(files.has(before[0] ?? ''), false)
  assert.equal(files.get(before[1] ?? ''), 'old\n')
})
