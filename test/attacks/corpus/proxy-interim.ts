// Answers of a pod with a thousand interim ones in front.

import type { Attack } from '../attack.ts'
import { attackHttp2, closedLoop, head, request } from '../wire/http2.ts'

const PATH = '/api/v1/namespaces/default/pods/web-0/proxy/?hostile=interim'

export const attack: Attack = {
  reference: 'hostile answers through the proxy',
  does: 'asks a pod that answers with 1,000 heads of 103',
  who: ['known', 'unknown'],
  answers: [
    '200',
    '401',
    '403',
    'RST_STREAM REFUSED_STREAM',
    '502',
    '504',
    '103',
    'RST_STREAM INTERNAL_ERROR',
    'RST_STREAM CANCEL',
    'RST_STREAM PROTOCOL_ERROR',
  ],
  run: (target, signal) =>
    attackHttp2(target, signal, {}, (connection) => closedLoop(connection, 50, request(head(target, 'GET', PATH)))),
}
