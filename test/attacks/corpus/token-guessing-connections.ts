// Tokens that do not exist, each on a connection of its own.

import * as h2 from '../../harness/frames/h2-frames.ts'
import type { Attack } from '../attack.ts'
import { attackHttp2, head, SMALL_PATH } from '../wire/http2.ts'

export const attack: Attack = {
  reference: 'token guessing',
  does: 'guesses tokens, each on another connection',
  who: ['unknown'],
  answers: ['401', '503', 'RST_STREAM REFUSED_STREAM'],
  must: ['401', '429', 'closed', '503'],
  run: (target, signal) => {
    let n = 0
    return attackHttp2(target, signal, { connections: 16 }, (connection) => ({
      next: () =>
        connection.stream() > 1
          ? undefined
          : h2.headersFrames(1, head(target, 'GET', SMALL_PATH, 'authorization', `Bearer invalid-connection-${n++}`)),
      ended: () => connection.wire.close(),
    }))
  },
}
