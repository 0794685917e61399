// Deletions with the largest body that is read, deep JSON.

import * as h2 from '../../harness/frames/h2-frames.ts'
import type { Attack } from '../attack.ts'
import { attackHttp2, closedLoop, head, request } from '../wire/http2.ts'

const BODY = `{"a":${'['.repeat(7_990)}${']'.repeat(7_990)}}`

export const attack: Attack = {
  reference: 'hostile review 1',
  does: 'deletes pods with 16,000 bytes of nested JSON',
  who: ['known', 'unknown'],
  answers: [
    '200',
    '201',
    '400',
    '401',
    '403',
    '404',
    '409',
    '413',
    '415',
    '503',
    'RST_STREAM NO_ERROR',
    'RST_STREAM CANCEL',
    'RST_STREAM STREAM_CLOSED',
    'RST_STREAM REFUSED_STREAM',
    'RST_STREAM FLOW_CONTROL_ERROR',
    'GOAWAY FLOW_CONTROL_ERROR',
  ],
  run: (target, signal) =>
    attackHttp2(target, signal, {}, (connection) => {
      const remove = request(
        head(target, 'DELETE', '/api/v1/namespaces/default/pods/web-0', 'content-type', 'application/json'),
        0,
      )
      return closedLoop(connection, 50, (stream) =>
        Buffer.concat([remove(stream), h2.data(stream, BODY, h2.END_STREAM)]),
      )
    }),
}
