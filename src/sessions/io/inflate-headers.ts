// zlib with SPDY's dictionary.

import { constants, inflateSync } from 'node:zlib'
import { spdyDictionary } from '../core/protocol/spdy-dictionary.ts'

const DICTIONARY = spdyDictionary()

/** What a zlib stream that goes on says so far. @param limit of the result, bytes @throws if it is longer, or another kind of data */
export function inflateHeaders(blocks: Uint8Array, limit: number): Buffer {
  return inflateSync(blocks, {
    dictionary: DICTIONARY,
    finishFlush: constants.Z_SYNC_FLUSH,
    maxOutputLength: limit,
  })
}
