// Deletions of whole collections of protected pods.

import type { Attack } from '../attack.ts'
import { attackHttp2, closedLoop, head, request } from '../wire/http2.ts'

export const attack: Attack = {
  reference: 'collections at full speed',
  does: 'deletes the collection of pods',
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
    attackHttp2(target, signal, {}, (connection) =>
      closedLoop(connection, 50, request(head(target, 'DELETE', '/api/v1/namespaces/default/pods'))),
    ),
}
