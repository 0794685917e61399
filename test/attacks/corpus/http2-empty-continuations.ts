// A header block that is continued by frames without content.

import * as h2 from '../../harness/frames/h2-frames.ts'
import type { Attack } from '../attack.ts'
import { attackHttp2, head } from '../wire/http2.ts'

export const attack: Attack = {
  reference: 'CVE-2019-9518, CVE-2024-27316',
  does: 'sends empty CONTINUATION frames without end',
  who: ['known', 'unknown'],
  answers: [],
  must: ['GOAWAY ENHANCE_YOUR_CALM', 'closed'],
  run: (target, signal) =>
    attackHttp2(target, signal, { acknowledges: false }, (connection) => {
      const block = head(target, 'GET', '/version')
      let stream = 0
      let piece = Buffer.alloc(0)
      return {
        next() {
          if (stream !== 0) return piece
          stream = connection.stream()
          piece = Buffer.concat(new Array<Buffer>(200).fill(h2.frame(h2.CONTINUATION, 0, stream)))
          return h2.frame(h2.HEADERS, h2.END_STREAM, stream, block)
        },
      }
    }),
}
