// Impersonation of ever new users: an access review each.

import * as h2 from '../../harness/frames/h2-frames.ts'
import type { Attack } from '../attack.ts'
import { attackHttp2, closedLoop, head, SMALL_PATH } from '../wire/http2.ts'

export const attack: Attack = {
  reference: 'hostile review 3',
  does: 'impersonates another user with each request',
  who: ['known'],
  answers: ['200', '403', '503', 'RST_STREAM REFUSED_STREAM'],
  run: (target, signal) => {
    let n = 0
    const asNew = (stream: number): Buffer =>
      h2.headersFrames(stream, head(target, 'GET', SMALL_PATH, 'impersonate-user', `user-${n++}`))
    return attackHttp2(target, signal, {}, (connection) => closedLoop(connection, 100, asNew))
  },
}
