// Stream ids up to the last one: each connection has two.

import type { Attack } from '../attack.ts'
import { attackHttp2, head, request, SMALL_PATH } from '../wire/http2.ts'

const LAST_STREAM = 2 ** 31 - 1

export const attack: Attack = {
  reference: 'stream ids used up',
  does: 'opens the last streams that a connection may have, and begins anew',
  who: ['known', 'unknown'],
  answers: ['200', '401', '403', 'RST_STREAM REFUSED_STREAM'],
  run: (target, signal) =>
    attackHttp2(target, signal, { connections: 4 }, (connection) => {
      const get = request(head(target, 'GET', SMALL_PATH))
      const frames = [get(1), get(LAST_STREAM)]
      return {
        next: () => frames.shift(),
        ended(stream) {
          if (stream === LAST_STREAM) connection.wire.close()
        },
      }
    }),
}
