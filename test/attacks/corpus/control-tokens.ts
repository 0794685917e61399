// Tokens that the embedded API server has not issued, each another one.

import * as h2 from '../../harness/frames/h2-frames.ts'
import type { Attack } from '../attack.ts'
import { attackHttp2, closedLoop, head } from '../wire/http2.ts'

export const attack: Attack = {
  reference: 'token guessing',
  does: 'guesses tokens on port 9443',
  who: ['unknown'],
  answers: ['401', '403', 'RST_STREAM REFUSED_STREAM', 'GOAWAY PROTOCOL_ERROR'],
  must: ['401', '429', 'closed'],
  run: (target, signal) => {
    let n = 0
    const guess = (stream: number): Buffer =>
      h2.headersFrames(stream, head(target, 'GET', '/api', 'authorization', `Bearer a.b${n++}.c`))
    const options = { port: target.controlPort, certificate: null }
    return attackHttp2(target, signal, options, (connection) => closedLoop(connection, 100, guess))
  },
}
