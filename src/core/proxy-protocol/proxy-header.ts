// The header that a load balancer puts in front of a connection: PROXY protocol versions 1 and 2 (haproxy.org, proxy-protocol.txt). Which
// of the two is told by its first byte; that there is one is never guessed. Read byte by byte into a buffer of fixed size: of a header of
// 65,551 bytes only the addresses are kept.

import type { DeclaredEnds, HeaderReader } from './header-reader.ts'
import { HeaderV1 } from './header-v1.ts'
import { HeaderV2 } from './header-v2.ts'

export type ProxyHeader =
  /** All bytes belong to the header, and there are more to come. */
  | { readonly kind: 'more' }
  /** `length` bytes of the last chunk belong to it. `ends` undefined = the socket's own addresses count. */
  | { readonly kind: 'complete'; readonly length: number; readonly ends: DeclaredEnds | undefined }
  /** The connection must be closed. */
  | { readonly kind: 'invalid'; readonly problem: string }

const MORE: ProxyHeader = { kind: 'more' }
const VERSION_1 = 0x50 // P
const VERSION_2 = 0x0d

/** Reads one header, not the one that a client may have put behind it. After `complete` or `invalid` it is used up. */
export class ProxyHeaderReader {
  #reader: HeaderReader | undefined

  read(chunk: Uint8Array): ProxyHeader {
    for (let at = 0; at < chunk.length; at++) {
      const byte = chunk[at] ?? 0
      this.#reader ??= readerOf(byte)
      if (this.#reader === undefined) return { kind: 'invalid', problem: 'no PROXY header' }
      const result = this.#reader.next(byte)
      if (typeof result === 'string') return { kind: 'invalid', problem: result }
      if (result !== undefined) return { kind: 'complete', length: at + 1, ends: result.ends }
    }
    return MORE
  }
}

function readerOf(byte: number): HeaderReader | undefined {
  if (byte === VERSION_1) return new HeaderV1()
  return byte === VERSION_2 ? new HeaderV2() : undefined
}
