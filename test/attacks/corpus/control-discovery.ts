// Discovery and OpenAPI of the embedded API server, as fast as they are answered.

import type { Attack } from '../attack.ts'
import { attackHttp2, closedLoop, head, inTurn, request } from '../wire/http2.ts'

const PATHS = ['/openapi/v2', '/openapi/v3', '/apis', '/apis/proxy.kubegateway.io/v1alpha1']

export const attack: Attack = {
  reference: 'discovery storm',
  does: 'asks port 9443 for its OpenAPI',
  who: ['known', 'unknown'],
  answers: [
    '200',
    '201',
    '400',
    '401',
    '403',
    '404',
    '413',
    '415',
    'RST_STREAM NO_ERROR',
    'RST_STREAM CANCEL',
    'RST_STREAM REFUSED_STREAM',
    'RST_STREAM STREAM_CLOSED',
    'GOAWAY PROTOCOL_ERROR',
  ],
  run: (target, signal) => {
    const certificate = target.who === 'known' ? target.control.viewer : null
    return attackHttp2(target, signal, { port: target.controlPort, certificate, connections: 4 }, (connection) => {
      const asks = PATHS.map((path) => request(head(target, 'GET', path)))
      return closedLoop(connection, 20, inTurn(asks))
    })
  },
}
