// Watches, as many as connections and streams allow.

import type { Attack } from '../attack.ts'
import { attackHttp2, closedLoop, head, request } from '../wire/http2.ts'

export const attack: Attack = {
  reference: '10,000 watches',
  does: 'opens 250 watches on each of 40 connections',
  who: ['known', 'unknown'],
  answers: ['200', '401', '403', 'RST_STREAM REFUSED_STREAM'],
  run: (target, signal) =>
    attackHttp2(target, signal, { connections: 40 }, (connection) =>
      closedLoop(connection, 250, request(head(target, 'GET', '/api/v1/pods?watch=true'))),
    ),
}
