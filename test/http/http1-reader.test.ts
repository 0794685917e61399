// What the reader of HTTP/1.1 accepts, node:http's parser (llhttp) accepts as well, and sees the same requests in it; and what it sees does not depend on
// how the bytes were cut into pieces.

import assert from 'node:assert/strict'
import { createServer, type IncomingMessage } from 'node:http'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { type Http1Head, Http1Reader, type Http1Sink } from '../../src/gateway/io/listener/http1/reader.ts'
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

/** A request as far as it was read. */
interface Message {
  readonly method: string
  readonly target: string
  readonly fields: HeaderList
  body: string
  trailers: HeaderList
  complete: boolean
}

class Recorder implements Http1Sink {
  readonly messages: Message[] = []
  invalid = ''
  held = false
  readonly reader: Http1Reader = new Http1Reader(this, LIMIT)
  #keepsAlive = true
  #current: Message | undefined

  onHead(): void {
    const { list, hasBody, keepsAlive, upgrade } = this.reader.head as Readonly<Http1Head>
    this.#keepsAlive = keepsAlive && upgrade === ''
    const [method = '', target = ''] = [list[1], list[3]]
    this.#current = { method, target, fields: list.slice(8), body: '', trailers: [], complete: false }
    this.messages.push(this.#current)
    if (!hasBody) this.#end()
  }

  onBody(bytes: Buffer, end: boolean): void {
    if (this.#current !== undefined) this.#current.body += bytes.toString('latin1')
    if (end) this.#end()
  }

  onTrailers(list: HeaderList): void {
    if (this.#current !== undefined) this.#current.trailers = list
    this.#end()
  }

  onInvalid(status: string): void {
    this.invalid = status
  }

  #end(): void {
    if (this.#current !== undefined) this.#current.complete = true
    this.#current = undefined
    if (!this.#keepsAlive) this.reader.stop()
  }
}

/** The bytes in pieces of these sizes, again and again; each is read until it is consumed. @param pauses after so many looks reading pauses */
function read(bytes: Buffer, sizes: readonly number[], pauses: number): Recorder {
  const recorder = new Recorder()
  let looks = 0
  const pace = { goOn: () => ++looks % pauses !== 0 }
  for (let at = 0, n = 0; at < bytes.length; n++) {
    const piece = Buffer.from(bytes.subarray(at, at + (sizes[n % sizes.length] ?? 1)))
    for (let from = 0; from < piece.length; ) from = recorder.reader.read(piece, from, 0, pace)
    // Nothing of a piece may be kept: its memory is used again.
    at += piece.length
    piece.fill('?')
  }
  return recorder
}

const oracle = createServer({ insecureHTTPParser: false, maxHeaderSize: 4 * LIMIT, shouldUpgradeCallback: () => false })
const seen = new WeakMap<object, Message[]>()
const onRequest = (message: IncomingMessage): void => {
  const { method = '', url: target = '' } = message
  const entry: Message = { method, target, fields: lower(message.rawHeaders), body: '', trailers: [], complete: false }
  seen.get(message.socket)?.push(entry)
  message.on('data', (chunk: Buffer) => {
    entry.body += chunk.toString('latin1')
  })
  message.on('error', () => undefined)
  message.on('end', () => {
    entry.trailers = lower(message.rawTrailers)
    entry.complete = true
  })
}
oracle.on('request', onRequest)
oracle.on('checkContinue', onRequest)
oracle.on('checkExpectation', onRequest)
oracle.on('clientError', () => undefined)

/** What node:http sees in it. It passes bodies on in later turns, and never answers. */
async function askOracle(bytes: Buffer): Promise<Message[]> {
  const socket = new FakeSocket()
  const messages: Message[] = []
  seen.set(socket, messages)
  socket.on('error', () => undefined)
  oracle.emit('connection', socket)
  socket.emit('data', bytes)
  for (let turn = 0; turn < 4; turn++) await new Promise(setImmediate)
  socket.destroy()
  return messages
}

async function assertSame(text: string, sizes: readonly number[], pauses: number): Promise<Recorder> {
  const bytes = Buffer.from(text, 'latin1')
  const whole = read(bytes, [bytes.length], Number.POSITIVE_INFINITY)
  const cut = read(bytes, sizes, pauses)
  assert.deepEqual(cut.messages, whole.messages, 'in pieces')
  assert.equal(cut.invalid, whole.invalid, 'in pieces')
  const others = await askOracle(bytes)
  for (const [i, message] of whole.messages.entries()) {
    const other = others[i]
    assert.ok(other !== undefined, `node:http does not see request ${i}: ${JSON.stringify(message)}`)
    if (message.complete) assert.deepEqual(message, other, text)
    else {
      assert.deepEqual([message.method, message.target, message.fields], [other.method, other.target, other.fields])
      assert.ok(other.body.startsWith(message.body) || message.body.startsWith(other.body))
    }
  }
  return whole
}

const METHODS = [
  'GET',
  'POST',
  'PUT',
  'DELETE',
  'PATCH',
  'HEAD',
  'OPTIONS',
  'M-SEARCH',
  'TRACE',
  'get',
  'FOO',
  'SOURCE',
  'PRI',
]
const TARGETS = [
  '/',
  '/api/v1/pods?watch=1',
  '*',
  'https://a/b',
  'http://u@h:1?q',
  '//x',
  '/a#b',
  '/\xe9',
  'a',
  'x:y',
  '',
  '*a',
  'https://',
  'h1://a/',
]
const VERSIONS = [
  'HTTP/1.1',
  'HTTP/1.1',
  'HTTP/1.1',
  'HTTP/1.1',
  'HTTP/1.0',
  'HTTP/1.2',
  'HTTP/2.0',
  'http/1.1',
  'HTTP/1.1 ',
  '',
]

/** Nearly one request. */
const likely = fc
  .record({
    method: fc.constantFrom(...METHODS),
    target: fc.constantFrom(...TARGETS),
    version: fc.constantFrom(...VERSIONS),
    fields: fc.array(fc.tuple(fc.constantFrom(...FIELDS), fc.constantFrom(...ENDS)), { maxLength: 5 }),
    ends: fc.tuple(fc.constantFrom(...ENDS), fc.constantFrom(...ENDS)),
    body: fc.constantFrom(...BODIES),
  })
  .map(({ method, target, version, fields, ends, body }) => {
    const lines = fields.map(([field, end]) => field + end).join('')
    return `${method} ${target} ${version}${ends[0]}Host: h\r\n${lines}${ends[1]}${body}`
  })

/** One request as it should be. */
const sound = fc
  .record({
    method: fc.constantFrom('GET', 'POST', 'PUT', 'DELETE', 'PATCH', 'HEAD', 'OPTIONS'),
    target: fc.constantFrom('/', '/api/v1/pods?watch=1', '*', 'https://a/b', '/|"^`{}\\'),
    fields: fc.array(
      fc.constantFrom(
        'X: y',
        'x-empty:',
        'A: \xff b\t c',
        'accept:a',
        'x_y.z~: 1',
        'Expect: 100-continue',
        `X-Long: ${'y'.repeat(700)}`,
      ),
      { maxLength: 4 },
    ),
    body: fc.array(
      fc.oneof(fc.string({ unit: 'binary-ascii', minLength: 1, maxLength: 20 }), fc.constant('0\r\n\r\n'.repeat(100))),
      { maxLength: 3 },
    ),
    isChunked: fc.boolean(),
    trailers: fc.array(fc.constantFrom('T: u\r\n', 'x-sum:  1 \r\n'), { maxLength: 2 }),
    isLast: fc.boolean(),
  })
  .map(({ method, target, fields, body, isChunked, trailers, isLast }) => {
    const all = body.join('')
    const chunks = body.map((piece) => `${piece.length.toString(16)}\r\n${piece}\r\n`).join('')
    const framing = isChunked ? 'Transfer-Encoding: chunked' : `Content-Length: ${all.length}`
    const lines = ['Host: h', ...fields, framing, ...(isLast ? ['Connection: close'] : [])].join('\r\n')
    return `${method} ${target} HTTP/1.1\r\n${lines}\r\n\r\n${isChunked ? `${chunks}0\r\n${trailers.join('')}\r\n` : all}`
  })

describe('the same requests as llhttp sees', () => {
  test('sound ones are all read, whole, however they are cut', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(sound, { minLength: 1, maxLength: 3 }),
        cuts,
        pauses,
        async (requests, sizes, every) => {
          const { messages, invalid } = await assertSame(requests.join(''), sizes, every)
          const last = requests.findIndex((request) => request.includes('Connection: close'))
          assert.equal(invalid, '')
          assert.equal(messages.length, last < 0 ? requests.length : last + 1)
          assert.ok(messages.every(({ complete }) => complete))
        },
      ),
      { numRuns: 500 },
    )
  })

  test('sound ones with mistakes', async () => {
    const changes = fc.array(mutation, { minLength: 1, maxLength: 3 })
    await fc.assert(
      fc.asyncProperty(
        fc.array(sound, { minLength: 1, maxLength: 3 }),
        changes,
        cuts,
        pauses,
        async (requests, some, sizes, every) => {
          await assertSame(mutate(requests.join(''), some), sizes, every)
        },
      ),
      { numRuns: 3000 },
    )
  })

  test('what is nearly a request', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(likely, { minLength: 1, maxLength: 3 }),
        cuts,
        pauses,
        async (requests, sizes, every) => {
          await assertSame(requests.join(''), sizes, every)
        },
      ),
      { numRuns: 3000 },
    )
  })

  test('each octet, wherever it may stand', async () => {
    let accepted = 0
    for (let octet = 0; octet < 256; octet++) {
      const char = String.fromCharCode(octet)
      for (const text of [
        `G${char}T / HTTP/1.1\r\nHost: h\r\n\r\n`,
        `GET${char}/ HTTP/1.1\r\nHost: h\r\n\r\n`,
        `GET ${char} HTTP/1.1\r\nHost: h\r\n\r\n`,
        `GET ${char}/ HTTP/1.1\r\nHost: h\r\n\r\n`,
        `GET /a${char}b HTTP/1.1\r\nHost: h\r\n\r\n`,
        `GET /?a${char}b HTTP/1.1\r\nHost: h\r\n\r\n`,
        `GET http://a${char}b HTTP/1.1\r\nHost: h\r\n\r\n`,
        `GET h${char}p://ab HTTP/1.1\r\nHost: h\r\n\r\n`,
        `GET http:${char}/ab HTTP/1.1\r\nHost: h\r\n\r\n`,
        `GET /${char}HTTP/1.1\r\nHost: h\r\n\r\n`,
        `GET / HTTP/1${char}1\r\nHost: h\r\n\r\n`,
        `GET / HTTP/1.${char}\r\nHost: h\r\n\r\n`,
        `GET / HTTP/1.1${char}\r\nHost: h\r\n\r\n`,
        `GET / HTTP/1.1\r${char}Host: h\r\n\r\n`,
        `GET / HTTP/1.1\r\n${char}Host: h\r\nHost: h\r\n\r\n`,
        `GET / HTTP/1.1\r\nHost: h\r\nX${char}Y: z\r\n\r\n`,
        `GET / HTTP/1.1\r\nHost: h\r\nX${char}: z\r\n\r\n`,
        `GET / HTTP/1.1\r\nHost: h\r\nX:${char}z\r\n\r\n`,
        `GET / HTTP/1.1\r\nHost: h\r\nX: y${char}z\r\n\r\n`,
        `GET / HTTP/1.1\r\nHost: h\r\nX: z${char}\r\n\r\n`,
        `GET / HTTP/1.1\r\nHost: h\r\nX: z\r${char}\r\n`,
        `GET / HTTP/1.1\r\nHost: h\r\n\r${char}GET / HTTP/1.1\r\nHost: h\r\n\r\n`,
        `${char}GET / HTTP/1.1\r\nHost: h\r\n\r\n`,
        `PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: 1${char}\r\n\r\n0123456789`,
        `PUT / HTTP/1.1\r\nHost: h\r\nContent-Length:${char}1\r\n\r\n0123456789`,
        ...[
          `1${char}\r\nx\r\n0\r\n\r\n`,
          `${char}1\r\nx\r\n0\r\n\r\n`,
          `1\r${char}x\r\n0\r\n\r\n`,
          `1\r\nx${char}\r\n0\r\n\r\n`,
          `1\r\nx\r${char}0\r\n\r\n`,
          `1\r\nx\r\n${char}\r\n\r\n`,
          `1\r\nx\r\n0\r${char}\r\n`,
          `1;a${char}b\r\nx\r\n0\r\n\r\n`,
          `1;a=${char}b\r\nx\r\n0\r\n\r\n`,
          `1\r\nx\r\n0\r\nT${char}: u\r\n\r\n`,
          `1\r\nx\r\n0\r\nT: u${char}\r\n\r\n`,
        ].map((body) => `PUT / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n${body}`),
        `PUT / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked${char}\r\n\r\n0\r\n\r\n`,
      ]) {
        const { messages } = await assertSame(text, [1], 3)
        if (messages[0]?.complete) accepted++
      }
    }
    assert.ok(accepted > 1000, `${accepted}`)
  })
})
