// Evictions of protected pods, as fast as they are refused.

import * as h2 from '../../harness/frames/h2-frames.ts'
import type { Attack } from '../attack.ts'
import { attackHttp2, closedLoop, head, request } from '../wire/http2.ts'

const BODY = '{"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":"web-0"}}'

export const attack: Attack = {
  reference: 'evictions at full speed',
  does: 'evicts pods whose PodProtector allows none',
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
      const path = '/api/v1/namespaces/default/pods/web-0/eviction'
      const evict = request(head(target, 'POST', path, 'content-type', 'application/json'), 0)
      return closedLoop(connection, 100, (stream) =>
        Buffer.concat([evict(stream), h2.data(stream, BODY, h2.END_STREAM)]),
      )
    }),
}
