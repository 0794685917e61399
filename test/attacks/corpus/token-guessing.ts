// Tokens that do not exist, each another one: a TokenReview each.

import * as h2 from '../../harness/frames/h2-frames.ts'
import type { Attack } from '../attack.ts'
import { attackHttp2, closedLoop, head, SMALL_PATH } from '../wire/http2.ts'

export const attack: Attack = {
  reference: 'token guessing',
  does: 'guesses tokens, each another one',
  who: ['unknown'],
  answers: ['401', '503', 'RST_STREAM REFUSED_STREAM'],
  must: ['401', '429', 'closed', '503'],
  run: (target, signal) => {
    let n = 0
    const guess = (stream: number): Buffer => {
      const token = `Bearer invalid-${n++}`
      return h2.headersFrames(stream, head(target, 'GET', SMALL_PATH, 'authorization', token))
    }
    return attackHttp2(target, signal, {}, (connection) => closedLoop(connection, 100, guess))
  },
}
