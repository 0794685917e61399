// Valid requests as fast as they are answered, on one connection.

import type { Attack } from '../attack.ts'
import { attackHttp2, closedLoop, head, request, SMALL_PATH } from '../wire/http2.ts'

export const attack: Attack = {
  reference: 'valid requests at full speed',
  does: '1 connection with 250 requests at once',
  who: ['known', 'unknown'],
  answers: ['200', '401', '403', 'RST_STREAM REFUSED_STREAM'],
  run: (target, signal) =>
    attackHttp2(target, signal, {}, (connection) =>
      closedLoop(connection, 250, request(head(target, 'GET', SMALL_PATH))),
    ),
}
