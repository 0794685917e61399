// Requests that the gateway answers itself, as fast as it can.

import type { Attack } from '../attack.ts'
import { attackHttp2, closedLoop, head, request, SMALL_PATH } from '../wire/http2.ts'

export const attack: Attack = {
  reference: 'refusals at full speed',
  does: 'asks with a forbidden field, so that each request is refused with a message',
  who: ['known', 'unknown'],
  answers: ['400', '401', 'RST_STREAM REFUSED_STREAM'],
  run: (target, signal) =>
    attackHttp2(target, signal, {}, (connection) =>
      closedLoop(connection, 250, request(head(target, 'GET', SMALL_PATH, 'impersonate-uid', '0'))),
    ),
}
