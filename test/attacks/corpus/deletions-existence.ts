// Deletions of pods that exist, and of such that do not.

import type { Attack } from '../attack.ts'
import { attackHttp2, closedLoop, head, request } from '../wire/http2.ts'

export const attack: Attack = {
  reference: 'hostile review 9',
  does: 'deletes pods that exist or not, without the right to: the answers are the same',
  who: ['unknown'],
  answers: ['403', '401', 'RST_STREAM REFUSED_STREAM'],
  run: (target, signal) =>
    attackHttp2(target, signal, {}, (connection) => {
      const exists = request(head(target, 'DELETE', '/api/v1/namespaces/default/pods/web-0'))
      const absent = request(head(target, 'DELETE', '/api/v1/namespaces/default/pods/none'))
      return closedLoop(connection, 100, (stream) => (stream % 4 === 1 ? exists(stream) : absent(stream)))
    }),
}
