// Requests for clusters that do not exist, each another one.

import * as h2 from '../../harness/frames/h2-frames.ts'
import type { Attack } from '../attack.ts'
import { attackHttp2, closedLoop, head } from '../wire/http2.ts'

export const attack: Attack = {
  reference: 'clusters without end',
  does: 'asks for unknown clusters by path and by name',
  who: ['known', 'unknown'],
  answers: ['404', '421', '401', 'RST_STREAM REFUSED_STREAM'],
  must: ['404', '421', '429', 'closed'],
  run: (target, signal) => {
    let n = 0
    const ask = (stream: number): Buffer =>
      h2.headersFrames(stream, head(target, 'GET', `/clusters/none-${n++}.example.com/api/v1/pods`))
    return attackHttp2(target, signal, {}, (connection) => closedLoop(connection, 250, ask))
  },
}
