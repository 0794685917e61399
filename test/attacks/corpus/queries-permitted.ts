// Queries of 9,998 parameters, just below the limits.

import type { Attack } from '../attack.ts'
import { attackHttp2, closedLoop, head, request } from '../wire/http2.ts'

export const attack: Attack = {
  reference: 'hostile review 6',
  does: 'asks with queries of 9,998 parameters',
  who: ['known', 'unknown'],
  answers: ['200', '400', '401', '403', '414', 'RST_STREAM REFUSED_STREAM'],
  run: (target, signal) => {
    const block = head(target, 'GET', `/api/v1/pods?${'labelSelector=a%3Db&'.repeat(9_998)}`)
    return attackHttp2(target, signal, {}, (connection) => closedLoop(connection, 20, request(block)))
  },
}
