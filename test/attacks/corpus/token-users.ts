// Valid tokens, each of another user: what is kept for each user is bounded.

import * as h2 from '../../harness/frames/h2-frames.ts'
import type { Attack } from '../attack.ts'
import { attackHttp2, closedLoop, head, SMALL_PATH } from '../wire/http2.ts'

export const attack: Attack = {
  reference: 'many users',
  does: 'is a new user with each request',
  who: ['known'],
  answers: ['200', '401', '403', '503', 'RST_STREAM REFUSED_STREAM'],
  run: (target, signal) => {
    let n = 0
    const asNew = (stream: number): Buffer => {
      const token = `Bearer many.${n++}.token`
      return h2.headersFrames(stream, head(target, 'GET', SMALL_PATH, 'authorization', token))
    }
    return attackHttp2(target, signal, { certificate: null }, (connection) => closedLoop(connection, 100, asNew))
  },
}
