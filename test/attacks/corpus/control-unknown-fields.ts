// Objects with as many unknown fields as fit.

import * as h2 from '../../harness/frames/h2-frames.ts'
import type { Attack } from '../attack.ts'
import { attackHttp2, closedLoop, head, request } from '../wire/http2.ts'

export const attack: Attack = {
  reference: 'hostile review 11',
  does: 'posts UpstreamClusters with 15,000 unknown fields',
  who: ['known'],
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
    '422',
    'RST_STREAM NO_ERROR',
    'RST_STREAM CANCEL',
    'RST_STREAM REFUSED_STREAM',
    'GOAWAY PROTOCOL_ERROR',
  ],
  must: ['400', '413', '422', '429', 'closed'],
  run: (target, signal) => {
    const options = { port: target.controlPort, certificate: target.control.editor }
    const fields = Array.from({ length: 15_000 }, (_, i) => `"f${i}":1`).join(',')
    const object = `{"apiVersion":"proxy.kubegateway.io/v1alpha1","kind":"UpstreamCluster","metadata":{"name":"a"},"spec":{${fields}}}`
    const body = Array.from({ length: Math.ceil(object.length / 16_000) }, (_, i) =>
      object.slice(i * 16_000, (i + 1) * 16_000),
    )
    return attackHttp2(target, signal, options, (connection) => {
      const path = '/apis/proxy.kubegateway.io/v1alpha1/upstreamclusters'
      const post = request(head(target, 'POST', path, 'content-type', 'application/json'), 0)
      return closedLoop(connection, 4, (stream) =>
        Buffer.concat([
          post(stream),
          ...body.map((piece) => h2.data(stream, piece)),
          h2.data(stream, '', h2.END_STREAM),
        ]),
      )
    })
  },
}
