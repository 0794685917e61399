// Connections that open streams, say GOAWAY, and end.

import * as h2 from '../../harness/frames/h2-frames.ts'
import type { Attack } from '../attack.ts'
import { attackHttp2, head, request, SMALL_PATH } from '../wire/http2.ts'

export const attack: Attack = {
  reference: 'GOAWAY storm',
  does: 'opens 100 requests, sends GOAWAY and closes the connection',
  who: ['known', 'unknown'],
  answers: ['200', '401', '403', 'RST_STREAM REFUSED_STREAM'],
  run: (target, signal) =>
    attackHttp2(target, signal, { connections: 8 }, (connection) => {
      const get = request(head(target, 'GET', SMALL_PATH))
      let asked = false
      return {
        next() {
          if (asked) return undefined
          asked = true
          setImmediate(() => connection.wire.close())
          return Buffer.concat([connection.batch(100, get), h2.goaway(0, h2.NO_ERROR)])
        },
      }
    }),
}
