// Requests that are reset at once: upstream has the work, and the client none.

import * as h2 from '../../harness/frames/h2-frames.ts'
import type { Attack } from '../attack.ts'
import { attackHttp2, head, request, SMALL_PATH } from '../wire/http2.ts'

export const attack: Attack = {
  reference: 'CVE-2023-44487',
  does: 'opens streams and resets them at once',
  who: ['known', 'unknown'],
  answers: ['200', '401', '403'],
  must: ['GOAWAY ENHANCE_YOUR_CALM', 'closed', '429'],
  run: (target, signal) =>
    attackHttp2(target, signal, {}, (connection) => {
      const get = request(head(target, 'GET', SMALL_PATH))
      return {
        next: () => connection.batch(64, (stream) => Buffer.concat([get(stream), h2.rstStream(stream, h2.CANCEL)])),
      }
    }),
}
