// Queries of a megabyte, refused before a review is sent.

import type { Attack } from '../attack.ts'
import { attackHttp2, closedLoop, head, request } from '../wire/http2.ts'

export const attack: Attack = {
  reference: 'hostile review 6',
  does: 'asks with queries of 900,000 bytes, 8 at once',
  who: ['known', 'unknown'],
  answers: ['400', '401', '403', '414', '431', 'RST_STREAM REFUSED_STREAM'],
  must: ['400', '414', '429', '431', 'closed'],
  run: (target, signal) => {
    const block = head(target, 'GET', `/api/v1/pods?${'labelSelector=a&'.repeat(56_000)}`)
    return attackHttp2(target, signal, {}, (connection) => closedLoop(connection, 8, request(block)))
  },
}
