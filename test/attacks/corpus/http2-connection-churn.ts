// A connection for each request.

import type { Attack } from '../attack.ts'
import { attackHttp2, head, request, SMALL_PATH } from '../wire/http2.ts'

export const attack: Attack = {
  reference: 'connection churn',
  does: 'opens 16 connections at once, asks once on each, and closes them',
  who: ['known', 'unknown'],
  answers: ['200', '401', '403', 'RST_STREAM REFUSED_STREAM'],
  run: (target, signal) =>
    attackHttp2(target, signal, { connections: 16 }, (connection) => {
      const get = request(head(target, 'GET', SMALL_PATH))
      const pieces = [connection.batch(1, get)]
      return { next: () => pieces.shift(), ended: () => connection.wire.close() }
    }),
}
