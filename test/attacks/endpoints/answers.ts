// The kinds of answers that a hostile endpoint gives to a call.

import { gzipSync } from 'node:zlib'
import { CONTINUATION, END_HEADERS, frame, HEADERS, headerBlock } from '../../harness/frames/h2-frames.ts'
import type { Asked } from './calls.ts'

const MIB = 1024 * 1024
const PIECE = 64 * 1024
/** SETTINGS_MAX_FRAME_SIZE, unless a SETTINGS frame says otherwise. */
const FRAME_BYTES = 16_384
/** What is without an end ends here, all the same: no test fills the machine. */
const ENDLESS_BYTES = 400 * MIB
const SLOW_MS = 50
const LARGE_BYTES = 32 * 1024
const JSON_TYPE = { 'content-type': 'application/json' }

/** The way back to the gateway, whatever protocol it speaks. */
export interface Answering {
  readonly asked: Asked
  head(status: number, fields?: Readonly<Record<string, string>>): void
  /** Resolves with false when the client takes no more of it. */
  write(bytes: Buffer | string): Promise<boolean>
  end(bytes?: Buffer | string): void
  /** The stream of HTTP/2. */
  readonly stream: number
  /** On the connection itself. Same result as `write`. */
  raw(bytes: Buffer | string): Promise<boolean>
  /** What an honest endpoint answers. */
  honest(): void
  pause(ms: number): Promise<void>
}

export interface AnswerKind {
  readonly name: string
  /** The endpoint speaks HTTP/1.1 only. Default: HTTP/2, where it is asked for. */
  readonly http1?: true
  /** Why the gateway does not withstand it yet. The test is skipped, and says so. */
  readonly pending?: string
  answer(answering: Answering): Promise<void> | void
}

export const ANSWERS: readonly AnswerKind[] = [
  {
    name: 'endless-body',
    async answer(a) {
      a.head(200, JSON_TYPE)
      if (await a.write('{"items":[{}')) await pour(a, piece(',{}'))
    },
  },
  { name: '100-mib-of-empty-objects', answer: (a) => filled(a, 100 * MIB) },
  { name: '12-mib-of-empty-objects', answer: (a) => filled(a, 12 * MIB) },
  { name: '2-mib-of-empty-objects', answer: (a) => filled(a, 2 * MIB) },
  {
    name: 'deep',
    async answer(a) {
      a.head(200, JSON_TYPE)
      if ((await pour(a, piece('['), 3 * MIB)) && (await pour(a, piece(']'), 3 * MIB))) a.end()
    },
  },
  {
    name: 'one-long-string',
    async answer(a) {
      a.head(200, JSON_TYPE)
      if ((await a.write('{"items":[],"x":"')) && (await pour(a, piece('x'), 60 * MIB))) a.end('"}')
    },
  },
  {
    name: 'pages-without-end',
    answer(a) {
      const items = Array.from({ length: 500 }, (_, i) => ({ metadata: { name: `x-${i}`, uid: `${Math.random()}` } }))
      const metadata = { resourceVersion: '1', continue: 'more' }
      a.head(200, JSON_TYPE)
      a.end(JSON.stringify({ kind: 'List', apiVersion: 'v1', metadata, items }))
    },
  },
  {
    name: 'watch-line-without-end',
    async answer(a) {
      if (!a.asked.query.includes('watch')) return a.honest()
      a.head(200, JSON_TYPE)
      if (await a.write('{"type":"ADDED","object":{"x":"')) await pour(a, piece('x'))
    },
  },
  {
    name: 'watch-of-empty-objects',
    async answer(a) {
      if (!a.asked.query.includes('watch')) return a.honest()
      a.head(200, JSON_TYPE)
      if ((await a.write('{"type":"ADDED","object":{"x":[{}')) && (await pour(a, piece(',{}'), 7 * MIB))) a.end(']}}\n')
    },
  },
  {
    name: 'watch-without-end',
    async answer(a) {
      if (!a.asked.query.includes('watch')) return a.honest()
      a.head(200, JSON_TYPE)
      for (let n = 0; n < ENDLESS_BYTES / PIECE; n++) {
        const lines = Array.from({ length: 300 }, (_, i) => {
          const metadata = { name: `x-${n}-${i}`, namespace: 'default', uid: `${n}-${i}`, resourceVersion: `${n}${i}` }
          return `${JSON.stringify({ type: 'ADDED', object: { metadata, spec: {}, status: {} } })}\n`
        })
        if (!(await a.write(lines.join('')))) return
      }
    },
  },
  {
    name: 'watch-of-large-objects-without-end',
    async answer(a) {
      if (!a.asked.query.includes('watch')) return a.honest()
      a.head(200, JSON_TYPE)
      for (let n = 0; n < ENDLESS_BYTES / LARGE_BYTES; n++) {
        const large = `${n}-`.padEnd(LARGE_BYTES, 'x')
        const metadata = {
          name: large,
          namespace: 'default',
          uid: large,
          resourceVersion: `${n}`,
          labels: { app: large },
        }
        if (!(await a.write(`${JSON.stringify({ type: 'ADDED', object: { metadata, spec: {}, status: {} } })}\n`)))
          return
      }
    },
  },
  {
    name: 'slow-bytes',
    async answer(a) {
      a.head(200, JSON_TYPE)
      while (await a.write(' ')) await a.pause(SLOW_MS)
    },
  },
  { name: 'silence', answer: () => undefined },
  {
    name: 'shorter-than-said',
    answer(a) {
      a.head(200, { ...JSON_TYPE, 'content-length': '1000' })
      a.end('{"items":[]}')
    },
  },
  {
    name: 'longer-than-said',
    async answer(a) {
      a.head(200, { ...JSON_TYPE, 'content-length': '12' })
      await a.write('{"items":[]}')
      a.end('{"items":[]}HTTP/1.1 200 OK\r\n\r\n')
    },
  },
  {
    name: 'compressed-bomb',
    answer(a) {
      a.head(200, { ...JSON_TYPE, 'content-encoding': 'gzip' })
      a.end(BOMB)
    },
  },
  {
    name: 'error-without-end',
    async answer(a) {
      a.head(500, JSON_TYPE)
      if (await a.write('{"kind":"Status","items":[{}')) await pour(a, piece(',{}'))
    },
  },
  {
    name: 'http1-head-without-end',
    http1: true,
    async answer(a) {
      if (await a.raw('HTTP/1.1 200 OK\r\n')) await pourRaw(a, piece('x-long: yyyyyyyyyyyyyy\r\n'))
    },
  },
  {
    name: 'http1-empty-fields-without-end',
    http1: true,
    async answer(a) {
      if (await a.raw('HTTP/1.1 200 OK\r\n')) await pourRaw(a, piece('a:\r\n'))
    },
  },
  {
    name: 'http1-interim-heads-without-end',
    http1: true,
    answer: (a) => pourRaw(a, piece('HTTP/1.1 103 Early Hints\r\nx: y\r\n\r\n')),
  },
  {
    name: 'http1-trailers-without-end',
    http1: true,
    async answer(a) {
      const head = 'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n'
      if (await a.raw(`${head}2\r\n{}\r\n0\r\n`)) await pourRaw(a, piece('a:\r\n'))
    },
  },
  {
    name: 'http1-answers-without-end',
    http1: true,
    answer: (a) => pourRaw(a, piece('HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}')),
  },
  {
    name: 'http2-head-without-end',
    async answer(a) {
      if (await a.raw(frame(HEADERS, 0, a.stream, headerBlock([':status', '200']))))
        await pourRaw(a, continuations(a.stream, ['x-long', 'y'.repeat(16_000)]))
    },
  },
  {
    name: 'http2-head-of-10-mib',
    async answer(a) {
      const more = continuations(a.stream, ['a', ''])
      if (!(await a.raw(frame(HEADERS, 0, a.stream, headerBlock([':status', '200']))))) return
      await pourRaw(a, more, 10 * MIB)
      await a.raw(frame(CONTINUATION, END_HEADERS, a.stream))
    },
  },
  {
    name: 'http2-interim-heads-without-end',
    answer: (a) => pourRaw(a, piece(frame(HEADERS, END_HEADERS, a.stream, headerBlock([':status', '103'])))),
  },
]

/** A whole object, most of it empty ones. */
async function filled(a: Answering, bytes: number): Promise<void> {
  a.head(200, JSON_TYPE)
  if ((await a.write('{"metadata":{"resourceVersion":"1"},"items":[{}')) && (await pour(a, piece(',{}'), bytes)))
    a.end(']}')
}

function piece(content: string | Buffer): Buffer {
  return Buffer.concat(Array(Math.floor(PIECE / content.length)).fill(Buffer.from(content)))
}

/** Frames of a header block that is not complete, with the same field again and again. */
function continuations(stream: number, field: readonly [string, string]): Buffer {
  const block = headerBlock([...field])
  const payload = Buffer.concat(Array(Math.floor(FRAME_BYTES / block.length)).fill(block))
  return piece(frame(CONTINUATION, 0, stream, payload))
}

/** The same again and again. Resolves with false when the client takes no more of it. */
async function pour(a: Answering, bytes: Buffer, total = ENDLESS_BYTES): Promise<boolean> {
  for (let sent = 0; sent < total; sent += bytes.length) if (!(await a.write(bytes))) return false
  return true
}

async function pourRaw(a: Answering, bytes: Buffer, total = ENDLESS_BYTES): Promise<void> {
  for (let sent = 0; sent < total; sent += bytes.length) if (!(await a.raw(bytes))) return
}

/** 100 MiB of `{},` in a hundredth of the bytes. */
const BOMB = gzipSync(Buffer.alloc(100 * MIB, '{},'))
