// zlib with SPDY's dictionary, as a stream that is read piece by piece: Node's own answers at once only for whole streams.

import { Inflate, Z_SYNC_FLUSH } from 'pako'
import { MalformedSession } from '../core/protocol/channels.ts'
import { spdyDictionary } from '../core/protocol/spdy-dictionary.ts'
import type { InflateHeaders } from '../core/protocol/spdy-fields.ts'

/** Header fields of a stream, unpacked. Clients send about a hundred bytes; a frame of as many could unpack to any number. */
export const MAX_HEADER_BYTES = 4 * 1024
/** Unpacked at a time. */
const PIECE_BYTES = 1024
/** Neither gzip nor without a head. */
const ZLIB_WINDOW_BITS = 15
const DICTIONARY = spdyDictionary()

/** For one session. */
export function headerInflater(): InflateHeaders {
  const inflate = new Inflate({ dictionary: DICTIONARY, windowBits: ZLIB_WINDOW_BITS, chunkSize: PIECE_BYTES })
  let pieces: Uint8Array[] = []
  let bytes = 0
  inflate.onData = (piece) => {
    bytes += piece.length
    if (bytes > MAX_HEADER_BYTES) throw new MalformedSession('header fields that become large')
    pieces.push(piece)
  }
  return (block) => {
    pieces = []
    bytes = 0
    // A stream that ends would pass over what follows.
    if (!inflate.push(block, Z_SYNC_FLUSH) || inflate.ended) {
      throw new MalformedSession('header fields that cannot be unpacked')
    }
    return Buffer.concat(pieces)
  }
}
