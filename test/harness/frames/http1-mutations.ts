// What tests of the readers of HTTP/1.1 have in common: parts of messages that are nearly right, mistakes in them, cuts, and a socket for node:http.

import { Duplex } from 'node:stream'
import fc from 'fast-check'
import type { HeaderList } from '../../../src/kit/api/stream.ts'

export class FakeSocket extends Duplex {
  override _read(): void {
    // The test emits what comes.
  }
  override _write(_chunk: unknown, _encoding: unknown, done: () => void): void {
    done()
  }
  setTimeout(): this {
    return this
  }
  setNoDelay(): this {
    return this
  }
  setKeepAlive(): this {
    return this
  }
  ref(): this {
    return this
  }
  unref(): this {
    return this
  }
}

export function lower(raw: readonly string[]): HeaderList {
  return raw.map((text, i) => (i % 2 === 0 ? text.toLowerCase() : text))
}

export const FIELDS: readonly string[] = [
  'Host: a',
  'host:a',
  'HOST:  a\t',
  'Content-Length: 3',
  'content-length: 0',
  'Content-Length: 03',
  'Content-Length: 3, 3',
  'Content-Length: +3',
  'Transfer-Encoding: chunked',
  'transfer-encoding: Chunked',
  'Transfer-Encoding: gzip, chunked',
  'Transfer-Encoding: ',
  'X: y',
  'x-empty:',
  'Connection: close',
  'Connection: keep-alive',
  'Connection: Upgrade',
  'Upgrade: websocket',
  'Expect: 100-continue',
  'A: \xff b\t c',
  'A : b',
  ' a: b',
  'A',
  ': b',
  'A\x00: b',
  'A: b\x01',
  'A: b\rc',
  'Trailer: x',
  'Proxy-Connection: close',
  'Keep-Alive: timeout=1',
  'x_y.z~: 1',
]
export const BODIES: readonly string[] = [
  '',
  'abc',
  '3\r\nabc\r\n0\r\n\r\n',
  '0\r\n\r\n',
  '1;a=b\r\nx\r\n0\r\nT: u\r\n\r\n',
  'a\r\n0123456789\r\n00\r\n\r\n',
  '1 \r\nx\r\n',
  '1\nx\n0\n\n',
  '3\r\nabcd\r\n0\r\n\r\n',
  '0\r\nContent-Length: 3\r\n\r\n',
  '1;\r\nx\r\n0\r\n\r\n',
  '1;a="b"\r\nx\r\n0\r\n\r\n',
  '1;a;b=c\r\nx\r\n0\r\n\r\n',
  'FFFFFFFFFFFFFFFFF\r\n',
]
export const ENDS: readonly string[] = [
  '\r\n',
  '\r\n',
  '\r\n',
  '\r\n',
  '\r\n',
  '\r\n',
  '\r\n',
  '\r\n',
  '\r\n',
  '\n',
  '\r',
  '\r\r\n',
  '',
]
const PIECES = [
  '\r\n',
  '\n',
  '\r',
  ' ',
  '\t',
  ':',
  ',',
  ';',
  '0',
  '\0',
  '\x7f',
  '\xff',
  'chunked',
  'Content-Length: 1\r\n',
  'Transfer-Encoding: chunked\r\n',
  'HTTP/1.1',
  '',
]
/** A mistake: see `mutate`. */
export interface Mistake {
  readonly at: number
  readonly removed: number
  readonly added: string
}

export const mutation: fc.Arbitrary<Mistake> = fc.record({
  at: fc.nat(),
  removed: fc.nat({ max: 3 }),
  added: fc.constantFrom(...PIECES),
})

export function mutate(text: string, changes: readonly Mistake[]): string {
  let mutated = text
  for (const { at, removed, added } of changes) {
    const place = at % (mutated.length + 1)
    mutated = mutated.slice(0, place) + added + mutated.slice(place + removed)
  }
  return mutated
}

/** Sizes of pieces. */
export const cuts: fc.Arbitrary<number[]> = fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1, maxLength: 8 })
/** Reading pauses after so many looks. */
export const pauses: fc.Arbitrary<number> = fc.integer({ min: 1, max: 9 })
