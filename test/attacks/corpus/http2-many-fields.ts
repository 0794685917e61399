// Heads with nearly as many fields as are permitted.

import type { Attack } from '../attack.ts'
import { attackHttp2, closedLoop, head, request, SMALL_PATH } from '../wire/http2.ts'

const FIELDS = Array.from({ length: 3_900 }, (_, i) => [`x-${i}`, 'v']).flat()

export const attack: Attack = {
  reference: 'hostile review 4',
  does: 'sends heads with 3,900 short fields, 20 at once',
  who: ['known', 'unknown'],
  answers: ['200', '401', '403', 'RST_STREAM REFUSED_STREAM', '431'],
  run: (target, signal) =>
    attackHttp2(target, signal, {}, (connection) =>
      closedLoop(connection, 20, request(head(target, 'GET', SMALL_PATH, ...FIELDS))),
    ),
}
