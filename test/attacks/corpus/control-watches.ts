// Watches of the embedded API server, as many as it allows.

import type { Attack } from '../attack.ts'
import { attackHttp2, closedLoop, head, request } from '../wire/http2.ts'

export const attack: Attack = {
  reference: 'watches without end',
  does: 'opens 250 watches on each of 8 connections to port 9443',
  who: ['known'],
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
    const options = { port: target.controlPort, certificate: target.control.viewer, connections: 8 }
    const path = '/apis/proxy.kubegateway.io/v1alpha1/upstreamclusters?watch=true'
    return attackHttp2(target, signal, options, (connection) =>
      closedLoop(connection, 250, request(head(target, 'GET', path))),
    )
  },
}
