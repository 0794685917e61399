// Tokens of half a megabyte.

import * as h2 from '../../harness/frames/h2-frames.ts'
import type { Attack } from '../attack.ts'
import { attackHttp2, closedLoop, head, SMALL_PATH } from '../wire/http2.ts'

const LONG = 'x'.repeat(500_000)

export const attack: Attack = {
  reference: 'long tokens',
  does: 'sends tokens of 500,000 bytes, each another one',
  who: ['unknown'],
  answers: ['401', '431', '400', '503', 'RST_STREAM REFUSED_STREAM'],
  run: (target, signal) => {
    let n = 0
    const guess = (stream: number): Buffer => {
      const token = `Bearer invalid-${n++}-${LONG}`
      return h2.headersFrames(stream, head(target, 'GET', SMALL_PATH, 'authorization', token))
    }
    return attackHttp2(target, signal, {}, (connection) => closedLoop(connection, 10, guess))
  },
}
