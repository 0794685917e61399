import assert from 'node:assert/strict'
import { execFileSync, spawn } from 'node:child_process'
import {
  closeSync,
  constants,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { gunzipSync } from 'node:zlib'
import { openLineWriter } from './line-writer.ts'

const dir = mkdtempSync(join(tmpdir(), 'line-writer-'))
after(() => rmSync(dir, { recursive: true }))

test('lines arrive whole and in order, over many blocks', async () => {
  const path = join(dir, 'order.log')
  const writer = openLineWriter(path)
  const lines = Array.from({ length: 20_000 }, (_, i) => `${i} ${'é'.repeat(i % 37)}`)
  for (const line of lines) writer.write(line)
  await writer.flush()
  assert.equal(readFileSync(path, 'utf8'), `${lines.join('\n')}\n`)
  writer.write('more')
  await writer.close()
  assert.ok(readFileSync(path, 'utf8').endsWith('\nmore\n'))
  assert.equal(writer.dropped(), 0)
  assert.equal(statSync(path).mode & 0o777, 0o600)
})

test('a file is appended to', async () => {
  const path = join(dir, 'append.log')
  for (const line of ['one', 'two']) {
    const writer = openLineWriter(path)
    writer.write(line)
    await writer.close()
  }
  assert.equal(readFileSync(path, 'utf8'), 'one\ntwo\n')
})

test('a slow reader loses lines, costs no memory, and gets what was kept', async () => {
  const fifo = join(dir, 'fifo')
  execFileSync('mkfifo', [fifo])
  const reader = openSync(fifo, constants.O_RDONLY | constants.O_NONBLOCK)
  const fd = openSync(fifo, constants.O_WRONLY | constants.O_NONBLOCK)
  const writer = openLineWriter(fd, { maxQueued: 100_000 })
  const line = 'x'.repeat(99)
  for (let i = 0; i < 3000; i++) writer.write(line)
  assert.ok(writer.dropped() >= 2000, `${writer.dropped()} dropped`)
  const flushed = writer.close()
  // From here on there is a reader: all accepted lines arrive.
  const cat = spawn('cat', [fifo], { stdio: ['ignore', 'pipe', 'ignore'] })
  let received = 0
  cat.stdout.on('data', (chunk: Buffer) => {
    received += chunk.length
  })
  const ended = new Promise((resolve) => cat.stdout.on('end', resolve))
  await flushed
  closeSync(fd)
  closeSync(reader)
  await ended
  assert.equal(received, (3000 - writer.dropped()) * 100)
})

test('a failed write is counted and reported once', async () => {
  const fd = openSync(join(dir, 'read-only'), 'w')
  closeSync(fd)
  const readOnly = openSync(join(dir, 'read-only'), 'r')
  const errors: string[] = []
  const writer = openLineWriter(readOnly, { onError: (message) => errors.push(message) })
  writer.write('a')
  await writer.flush()
  writer.write('b')
  await writer.close()
  closeSync(readOnly)
  assert.equal(writer.dropped(), 2)
  assert.equal(errors.length, 1)
  assert.match(errors[0] ?? '', /EBADF/)
})

test('a file that cannot be opened throws at once', () => {
  assert.throws(() => openLineWriter(join(dir, 'absent', 'x.log')), /ENOENT/)
})

test('what waits is written when the process exits without closing', () => {
  const script = `
    import { openLineWriter } from ${JSON.stringify(join(import.meta.dirname, 'line-writer.ts'))}
    const writer = openLineWriter(1)
    writer.write('first')
    writer.write('last')
    process.exit(0)
  `
  const out = execFileSync(process.execPath, ['--input-type=module', '-e', script], { encoding: 'utf8' })
  assert.equal(out, 'first\nlast\n')
})

test('half a line that a full disk left is ended before the next one, and counted', () => {
  const path = join(dir, 'full.log')
  // A file size limit acts like a full disk: a part is written, then nothing. Truncating makes room, as removing files does.
  const script = `
    import { truncateSync } from 'node:fs'
    import { openLineWriter } from ${JSON.stringify(join(import.meta.dirname, 'line-writer.ts'))}
    process.on('SIGXFSZ', () => {})
    const writer = openLineWriter(${JSON.stringify(path)})
    for (let i = 0; i < 500; i++) writer.write('x'.repeat(99))
    await writer.flush()
    const dropped = writer.dropped()
    truncateSync(${JSON.stringify(path)}, 30_050)
    writer.write('whole')
    await writer.close()
    console.log(dropped, writer.dropped())
  `
  const run = ['-c', 'ulimit -f 40; exec "$@"', 'bash', process.execPath, '--input-type=module', '-e', script]
  assert.equal(execFileSync('bash', run, { encoding: 'utf8' }), `${500 - 409} ${500 - 409}\n`)
  assert.ok(readFileSync(path, 'utf8').endsWith(`\n${'x'.repeat(50)}\nwhole\n`))
})

test('half a line that another process left is ended before the first one', async () => {
  const path = join(dir, 'left.log')
  writeFileSync(path, 'one\nha')
  const writer = openLineWriter(path)
  writer.write('two')
  await writer.close()
  assert.equal(readFileSync(path, 'utf8'), 'one\nha\ntwo\n')
})

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
