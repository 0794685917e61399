// Label selectors of thousands of terms.

import type { Attack } from '../attack.ts'
import { attackHttp2, closedLoop, head, request } from '../wire/http2.ts'

export const attack: Attack = {
  reference: 'hostile review 6',
  does: 'asks with label selectors of 60,000 bytes',
  who: ['known', 'unknown'],
  answers: ['200', '400', '401', '403', '414', 'RST_STREAM REFUSED_STREAM'],
  run: (target, signal) => {
    const terms = Array.from({ length: 4_000 }, (_, i) => `key-${4_000 - i}%3Dv`)
    const block = head(target, 'GET', `/api/v1/pods?labelSelector=${terms.join(',')}`)
    return attackHttp2(target, signal, {}, (connection) => closedLoop(connection, 20, request(block)))
  },
}
