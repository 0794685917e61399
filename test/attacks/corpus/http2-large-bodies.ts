// Bodies of 3 MiB that upstream has to take.

import * as h2 from '../../harness/frames/h2-frames.ts'
import type { Attack } from '../attack.ts'
import { attackHttp2, closedLoop, head, request } from '../wire/http2.ts'

export const attack: Attack = {
  reference: 'large bodies',
  does: 'posts bodies of 3 MiB, 20 at once',
  who: ['known', 'unknown'],
  answers: [
    '200',
    '401',
    '403',
    'RST_STREAM REFUSED_STREAM',
    '408',
    '413',
    'RST_STREAM NO_ERROR',
    'RST_STREAM CANCEL',
    'RST_STREAM FLOW_CONTROL_ERROR',
    'GOAWAY FLOW_CONTROL_ERROR',
    'RST_STREAM STREAM_CLOSED',
    'GOAWAY STREAM_CLOSED',
  ],
  run: (target, signal) =>
    attackHttp2(target, signal, {}, (connection) => {
      const post = request(head(target, 'POST', '/api/v1/namespaces/default/configmaps'), 0)
      // As much as the windows take at the beginning: who sends more breaks the protocol, and is another attack.
      const body = Buffer.alloc(16_000)
      return closedLoop(connection, 16, (stream) =>
        Buffer.concat([
          post(stream),
          ...new Array<Buffer>(15).fill(h2.data(stream, body)),
          h2.data(stream, body, h2.END_STREAM),
        ]),
      )
    }),
}
