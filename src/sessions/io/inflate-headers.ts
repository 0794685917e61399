// zlib with SPDY's dictionary, as a stream that is read piece by piece: Node's own answers at once only for whole streams.

import { Inflate, Z_SYNC_FLUSH } from 'pako'
import { MalformedSession } from '../core/protocol/channels.ts'
import type { InflateHeaders } from '../core/protocol/spdy.ts'

/** Header fields of a stream, unpacked. Clients send about a hundred bytes; a frame of as many could unpack to any number. */
export const MAX_HEADER_BYTES = 4 * 1024
/** Unpacked at a time. */
const PIECE_BYTES = 1024
/** Neither gzip nor without a head. */
const ZLIB_WINDOW_BITS = 15

/**
 * Words with their lengths, then text (SPDY protocol, draft 3.1, section 2.6.10.1), as in github.com/moby/spdystream/spdy/dictionary.go.
 */
const WORDS =
  'options|head|post|put|delete|trace|accept|accept-charset|accept-encoding|accept-language|accept-ranges|age|' +
  'allow|authorization|cache-control|connection|content-base|content-encoding|content-language|content-length|' +
  'content-location|content-md5|content-range|content-type|date|etag|expect|expires|from|host|if-match|' +
  'if-modified-since|if-none-match|if-range|if-unmodified-since|last-modified|location|max-forwards|pragma|' +
  'proxy-authenticate|proxy-authorization|range|referer|retry-after|server|te|trailer|transfer-encoding|upgrade|' +
  'user-agent|vary|via|warning|www-authenticate|method|get|status|200 OK|version|HTTP/1.1|url|public|set-cookie|' +
  'keep-alive|origin'

const TEXT =
  '100101201202205206300302303304305306307402405406407408409410411412413414415416417502504505203 Non-Authoritative ' +
  'Information204 No Content301 Moved Permanently400 Bad Request401 Unauthorized403 Forbidden404 Not Found500 Inter' +
  'nal Server Error501 Not Implemented503 Service UnavailableJan Feb Mar Apr May Jun Jul Aug Sept Oct Nov Dec 00:00' +
  ':00 Mon, Tue, Wed, Thu, Fri, Sat, Sun, GMTchunked,text/html,image/png,image/jpg,image/gif,application/xml,applic' +
  'ation/xhtml+xml,text/plain,text/javascript,publicprivatemax-age=gzip,deflate,sdchcharset=utf-8charset=iso-8859-1' +
  ',utf-,*,enq=0.'

const LENGTH_BYTES = 4

export function spdyDictionary(): Buffer {
  const pieces: Buffer[] = []
  for (const word of WORDS.split('|')) {
    const length = Buffer.alloc(LENGTH_BYTES)
    length.writeUInt32BE(word.length)
    pieces.push(length, Buffer.from(word, 'latin1'))
  }
  return Buffer.concat([...pieces, Buffer.from(TEXT, 'latin1')])
}

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
