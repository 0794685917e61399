// Trailers of a request as large as a head may be.

import * as h2 from '../../harness/frames/h2-frames.ts'
import type { Attack } from '../attack.ts'
import { attackHttp2, closedLoop, head, request } from '../wire/http2.ts'

export const attack: Attack = {
  reference: 'huge trailers',
  does: 'sends trailers of 1,000,000 bytes',
  who: ['known', 'unknown'],
  answers: [
    '200',
    '401',
    '403',
    'RST_STREAM REFUSED_STREAM',
    '400',
    '405',
    '413',
    '431',
    'RST_STREAM NO_ERROR',
    'RST_STREAM CANCEL',
    'RST_STREAM STREAM_CLOSED',
    'RST_STREAM PROTOCOL_ERROR',
    'RST_STREAM ENHANCE_YOUR_CALM',
    'GOAWAY STREAM_CLOSED',
  ],
  run: (target, signal) =>
    attackHttp2(target, signal, {}, (connection) => {
      const post = request(head(target, 'POST', '/api/v1/namespaces/default/configmaps'), 0)
      const trailers = request(h2.headerBlock(['x-trailer', 'v'.repeat(1_000_000)]))
      return closedLoop(connection, 20, (stream) =>
        Buffer.concat([post(stream), h2.data(stream, '{}'), trailers(stream)]),
      )
    }),
}
