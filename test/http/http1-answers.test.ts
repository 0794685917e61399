// What the reader of answers over HTTP/1.1 accepts, node:http's parser (llhttp) accepts as well, and sees the same answer in it; and what it sees does not
// depend on how the bytes were cut into pieces.

import assert from 'node:assert/strict'
import { request } from 'node:http'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { type AnswerSink, Http1AnswerReader } from '../../src/gateway/io/upstream/http1/answer-reader.ts'
import type { HeaderList } from '../../src/kit/api/stream.ts'
import {
  BODIES,
  cuts,
  ENDS,
  FakeSocket,
  FIELDS,
  lower,
  mutate,
  mutation,
  pauses,
} from '../harness/frames/http1-mutations.ts'

const LIMIT = 4096

/** An answer as far as it was read. */
interface Message {
  readonly status: string
  readonly fields: HeaderList
  body: string
  trailers: HeaderList
  complete: boolean
}

class Recorder implements AnswerSink {
  readonly interim: HeaderList[] = []
  message: Message | undefined
  invalid = ''
  held = false
  /** Bytes behind the answer. */
  surplus = 0
  readonly reader: Http1AnswerReader = new Http1AnswerReader(this, { maxHeaderBytes: LIMIT, maxFields: 100 })

  onHead(list: HeaderList, end: boolean): void {
    const [, status = '', ...fields] = list
    if (status.startsWith('1')) this.interim.push(list.slice(1))
    else this.message = { status, fields, body: '', trailers: [], complete: end }
  }

  onBody(bytes: Buffer, end: boolean): void {
    if (this.message === undefined) return
    this.message.body += bytes.toString('latin1')
    if (end) this.message.complete = true
  }

  onTrailers(list: HeaderList): void {
    if (this.message === undefined) return
    this.message.trailers = list
    this.message.complete = true
  }

  onMalformed(why: string): void {
    this.invalid = why
  }

  onRefused(): void {
    this.invalid = 'refused'
  }
}

/** The bytes in pieces of these sizes, again and again; then the connection ends. @param every so many looks reading pauses */
function read(bytes: Buffer, isHead: boolean, sizes: readonly number[], every: number): Recorder {
  const recorder = new Recorder()
  const { reader } = recorder
  let looks = 0
  const pace = { goOn: () => ++looks % every !== 0 }
  reader.begin(isHead)
  for (let at = 0, n = 0; at < bytes.length; n++) {
    const piece = Buffer.from(bytes.subarray(at, at + (sizes[n % sizes.length] ?? 1)))
    for (let from = 0; from < piece.length && !reader.hasEnded; ) from = reader.read(piece, from, 0, pace)
    at += piece.length
    // Nothing of a piece may be kept: its memory is used again.
    piece.fill('?')
  }
  if (reader.isUntilClose && recorder.message !== undefined) recorder.message.complete = true
  return recorder
}

interface Seen {
  readonly interim: HeaderList[]
  message: Message | undefined
}

/** What node:http sees in it. It passes bodies on in later turns. */
async function askOracle(bytes: Buffer, isHead: boolean): Promise<Seen> {
  const socket = new FakeSocket()
  const seen: Seen = { interim: [], message: undefined }
  const asked = request({
    method: isHead ? 'HEAD' : 'GET',
    createConnection: () => socket,
    maxHeaderSize: 4 * LIMIT,
    insecureHTTPParser: false,
  })
  asked.on('error', () => undefined)
  asked.on('information', ({ statusCode, rawHeaders }) => {
    if (statusCode !== 100) seen.interim.push([String(statusCode), ...lower(rawHeaders)])
  })
  asked.on('response', (response) => {
    const fields = lower(response.rawHeaders)
    const message = { status: String(response.statusCode), fields, body: '', trailers: [], complete: false }
    const entry: Message = message
    seen.message = entry
    response.on('error', () => undefined)
    response.on('data', (chunk: Buffer) => {
      entry.body += chunk.toString('latin1')
    })
    response.on('end', () => {
      entry.trailers = lower(response.rawTrailers)
      entry.complete = response.complete
    })
  })
  asked.end()
  await new Promise(setImmediate)
  socket.emit('data', bytes)
  socket.emit('end')
  for (let turn = 0; turn < 4; turn++) await new Promise(setImmediate)
  socket.destroy()
  asked.destroy()
  return seen
}

async function assertSame(text: string, isHead: boolean, sizes: readonly number[], every: number): Promise<Recorder> {
  const bytes = Buffer.from(text, 'latin1')
  const whole = read(bytes, isHead, [bytes.length], Number.POSITIVE_INFINITY)
  const cut = read(bytes, isHead, sizes, every)
  assert.deepEqual(cut.message, whole.message, 'in pieces')
  assert.deepEqual(cut.interim, whole.interim, 'in pieces')
  assert.equal(cut.invalid, whole.invalid, 'in pieces')
  const { message } = whole
  const other = await askOracle(bytes, isHead)
  if (message === undefined) return whole
  assert.ok(other.message !== undefined, `node:http does not see the answer: ${JSON.stringify(text)}`)
  assert.deepEqual(whole.interim, other.interim, text)
  if (message.complete) assert.deepEqual(message, other.message, JSON.stringify(text))
  else {
    assert.deepEqual([message.status, message.fields], [other.message.status, other.message.fields])
    assert.ok(other.message.body.startsWith(message.body) || message.body.startsWith(other.message.body))
  }
  return whole
}

const STATUS_LINES = [
  'HTTP/1.1 200 OK',
  'HTTP/1.1 200 OK',
  'HTTP/1.1 200 OK',
  'HTTP/1.1 200',
  'HTTP/1.1 200 ',
  'HTTP/1.0 200 OK',
  'HTTP/1.1 204 No Content',
  'HTTP/1.1 304 Not Modified',
  'HTTP/1.1 404 \xe9',
  'HTTP/1.1 103 Early Hints',
  'HTTP/1.1 100 Continue',
  'HTTP/1.1 101 Switching Protocols',
  'HTTP/1.1 099 a',
  'HTTP/1.1 600 a',
  'HTTP/1.1 20 OK',
  'HTTP/1.1 2000 OK',
  'HTTP/1.1  200 OK',
  'HTTP/1.2 200 OK',
  'HTTP/2.0 200 OK',
  'HTTP/0.9 200 OK',
  'http/1.1 200 OK',
  'ICY 200 OK',
  'RTSP/1.0 200 OK',
  'GET / HTTP/1.1',
  '',
]

/** Nearly one answer. */
const likely = fc
  .record({
    line: fc.constantFrom(...STATUS_LINES),
    fields: fc.array(fc.tuple(fc.constantFrom(...FIELDS), fc.constantFrom(...ENDS)), { maxLength: 5 }),
    ends: fc.tuple(fc.constantFrom(...ENDS), fc.constantFrom(...ENDS)),
    body: fc.constantFrom(...BODIES),
  })
  .map(({ line, fields, ends, body }) => {
    const lines = fields.map(([field, end]) => field + end).join('')
    return `${line}${ends[0]}${lines}${ends[1]}${body}`
  })

interface Sound {
  readonly text: string
  readonly body: string
}

/** One answer as it should be. */
const sound: fc.Arbitrary<Sound> = fc
  .record({
    line: fc.constantFrom('HTTP/1.1 200 OK', 'HTTP/1.1 503', 'HTTP/1.1 404 \xe9', 'HTTP/1.1 500 '),
    interim: fc.array(fc.constantFrom('HTTP/1.1 103 Early Hints\r\nlink: a\r\n\r\n', 'HTTP/1.1 100 Continue\r\n\r\n'), {
      maxLength: 2,
    }),
    fields: fc.array(
      fc.constantFrom(
        'X: y',
        'x-empty:',
        'A: \xff b\t c',
        'x_y.z~: 1',
        'Connection: close',
        `X-Long: ${'y'.repeat(700)}`,
      ),
      { maxLength: 4 },
    ),
    body: fc.array(
      fc.oneof(fc.string({ unit: 'binary-ascii', minLength: 1, maxLength: 20 }), fc.constant('0\r\n\r\n'.repeat(100))),
      { maxLength: 3 },
    ),
    framing: fc.constantFrom('sized', 'chunked', 'until-close'),
    trailers: fc.array(fc.constantFrom('T: u\r\n', 'x-sum:  1 \r\n'), { maxLength: 2 }),
  })
  .map(({ line, interim, fields, body, framing, trailers }) => {
    const all = body.join('')
    const chunks = body.map((piece) => `${piece.length.toString(16)}\r\n${piece}\r\n`).join('')
    const field = { sized: `Content-Length: ${all.length}`, chunked: 'Transfer-Encoding: chunked', 'until-close': '' }
    const lines = [line, ...fields, field[framing as keyof typeof field]].filter((each) => each !== '').join('\r\n')
    const sent = framing === 'chunked' ? `${chunks}0\r\n${trailers.join('')}\r\n` : all
    return { text: `${interim.join('')}${lines}\r\n\r\n${sent}`, body: all }
  })

describe('the same answer as llhttp sees', () => {
  test('a sound one is read, whole, however it is cut', async () => {
    await fc.assert(
      fc.asyncProperty(sound, cuts, pauses, async ({ text, body }, sizes, every) => {
        const { message, invalid } = await assertSame(text, false, sizes, every)
        assert.equal(invalid, '')
        assert.equal(message?.complete, true)
        assert.equal(message?.body, body)
      }),
      { numRuns: 500 },
    )
  })

  test('one with mistakes', async () => {
    const changes = fc.array(mutation, { minLength: 1, maxLength: 3 })
    await fc.assert(
      fc.asyncProperty(sound, fc.boolean(), changes, cuts, pauses, async ({ text }, isHead, some, sizes, every) => {
        await assertSame(mutate(text, some), isHead, sizes, every)
      }),
      { numRuns: 3000 },
    )
  })

  test('what is nearly an answer', async () => {
    await fc.assert(
      fc.asyncProperty(likely, likely, fc.boolean(), cuts, pauses, async (first, second, isHead, sizes, every) => {
        await assertSame(first + second, isHead, sizes, every)
      }),
      { numRuns: 3000 },
    )
  })

  test('each octet, wherever it may stand', async () => {
    let accepted = 0
    for (let octet = 0; octet < 256; octet++) {
      const char = String.fromCharCode(octet)
      for (const text of [
        `${char}HTTP/1.1 200 OK\r\n\r\n`,
        `HTTP/1${char}1 200 OK\r\n\r\n`,
        `HTTP/1.${char} 200 OK\r\n\r\n`,
        `HTTP/1.1${char}200 OK\r\n\r\n`,
        `HTTP/1.1 ${char}200 OK\r\n\r\n`,
        `HTTP/1.1 2${char}0 OK\r\n\r\n`,
        `HTTP/1.1 20${char} OK\r\n\r\n`,
        `HTTP/1.1 200${char}\r\n\r\n`,
        `HTTP/1.1 200${char}OK\r\n\r\n`,
        `HTTP/1.1 200 O${char}K\r\n\r\n`,
        `HTTP/1.1 200 OK\r${char}\r\n`,
        `HTTP/1.1 200 OK\r\n${char}\r\n`,
        `HTTP/1.1 200 OK\r\nX${char}Y: z\r\n\r\n`,
        `HTTP/1.1 200 OK\r\nX${char}: z\r\n\r\n`,
        `HTTP/1.1 200 OK\r\nX:${char}z\r\n\r\n`,
        `HTTP/1.1 200 OK\r\nX: z${char}\r\n\r\n`,
        `HTTP/1.1 200 OK\r\nX: z\r${char}\r\n`,
        `HTTP/1.1 200 OK\r\nX: z\r\n\r${char}body`,
        `HTTP/1.1 200 OK\r\nContent-Length: 1${char}\r\n\r\n0123456789`,
        `HTTP/1.1 200 OK\r\nContent-Length:${char}1\r\n\r\n0123456789`,
        ...[
          `1${char}\r\nx\r\n0\r\n\r\n`,
          `${char}1\r\nx\r\n0\r\n\r\n`,
          `1\r${char}x\r\n0\r\n\r\n`,
          `1\r\nx${char}\r\n0\r\n\r\n`,
          `1\r\nx\r\n0\r${char}\r\n`,
          `1;a=${char}b\r\nx\r\n0\r\n\r\n`,
          `1\r\nx\r\n0\r\nT: u${char}\r\n\r\n`,
        ].map((body) => `HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n${body}`),
        `HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked${char}\r\n\r\n0\r\n\r\n`,
      ]) {
        const { message } = await assertSame(text, false, [1], 3)
        if (message?.complete) accepted++
      }
    }
    assert.ok(accepted > 1000, `${accepted}`)
  })
})
