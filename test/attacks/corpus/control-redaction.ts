// Reads of objects whose credentials a viewer must not see.

import type { Attack } from '../attack.ts'
import { attackHttp2, closedLoop, head, request } from '../wire/http2.ts'

export const attack: Attack = {
  reference: 'hostile review 12',
  does: 'lists UpstreamClusters as a viewer',
  who: ['known'],
  answers: ['200', 'RST_STREAM REFUSED_STREAM', 'GOAWAY PROTOCOL_ERROR'],
  must: ['200', '429', 'closed'],
  run: (target, signal) => {
    const options = { port: target.controlPort, certificate: target.control.viewer }
    const path = '/apis/proxy.kubegateway.io/v1alpha1/upstreamclusters'
    return attackHttp2(target, signal, options, (connection) => {
      connection.wire.socket.on('data', (bytes: Buffer) => {
        if (target.secrets.some((secret) => bytes.includes(secret))) target.answers.count('a secret')
      })
      return closedLoop(connection, 20, request(head(target, 'GET', path)))
    })
  },
}
