import assert from 'node:assert/strict'
import { execFileSync, spawn } from 'node:child_process'
import { closeSync, constants, mkdtempSync, openSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
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
