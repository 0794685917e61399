// The kinds of answers that a hostile endpoint gives to a call.

import { gzipSync } from 'node:zlib'
import type { Asked } from './calls.ts'

const MIB = 1024 * 1024
const PIECE = 64 * 1024
/** What is without an end ends here, all the same: no test fills the machine. */
const ENDLESS_BYTES = 400 * MIB
const SLOW_MS = 50
const JSON_TYPE = { 'content-type': 'application/json' }

/** The way back to the gateway, whatever protocol it speaks. */
export interface Answering {
  readonly asked: Asked
  head(status: number, fields?: Readonly<Record<string, string>>): void
  /** Resolves with false when nobody takes it any more. */
  write(bytes: Buffer | string): Promise<boolean>
  end(bytes?: Buffer | string): void
  /** On the connection itself, of HTTP/1.1 only. Same result as `write`. */
  raw(bytes: Buffer): Promise<boolean>
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
    name: 'head-without-end',
    pending: 'heads of an HTTP/1.1 endpoint may take 4 MiB, and interim ones come without end',
    http1: true,
    async answer(a) {
      if (await a.raw(Buffer.from('HTTP/1.1 200 OK\r\n'))) await pourRaw(a, piece('x-long: yyyyyyyyyyyyyy\r\n'))
    },
  },
  {
    name: 'heads-without-end',
    pending: 'heads of an HTTP/1.1 endpoint may take 4 MiB, and interim ones come without end',
    http1: true,
    answer: (a) => pourRaw(a, piece('HTTP/1.1 103 Early Hints\r\nx: y\r\n\r\n')),
  },
]

/** A whole object, most of it empty ones. */
async function filled(a: Answering, bytes: number): Promise<void> {
  a.head(200, JSON_TYPE)
  if ((await a.write('{"metadata":{"resourceVersion":"1"},"items":[{}')) && (await pour(a, piece(',{}'), bytes)))
    a.end(']}')
}

function piece(text: string): Buffer {
  return Buffer.from(text.repeat(Math.floor(PIECE / text.length)))
}

/** The same again and again. Resolves with false when nobody takes it any more. */
async function pour(a: Answering, bytes: Buffer, total = ENDLESS_BYTES): Promise<boolean> {
  for (let sent = 0; sent < total; sent += bytes.length) if (!(await a.write(bytes))) return false
  return true
}

async function pourRaw(a: Answering, bytes: Buffer): Promise<void> {
  for (let sent = 0; sent < ENDLESS_BYTES; sent += bytes.length) if (!(await a.raw(bytes))) return
}

/** 100 MiB of `{},` in a hundredth of the bytes. */
const BOMB = gzipSync(Buffer.alloc(100 * MIB, '{},'))
