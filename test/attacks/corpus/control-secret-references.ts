// Objects that would send a Secret of another namespace in clear.

import * as h2 from '../../harness/frames/h2-frames.ts'
import type { Attack } from '../attack.ts'
import { attackHttp2, closedLoop, head, request } from '../wire/http2.ts'

export const attack: Attack = {
  reference: 'hostile review 8',
  does: 'posts UpstreamClusters with a token of kube-system for an http server',
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
  must: ['422', '400', '429', 'closed'],
  run: (target, signal) => {
    const options = { port: target.controlPort, certificate: target.control.editor }
    const spec = {
      servers: [{ endpoint: 'http://127.0.0.1:1' }],
      clientConfig: { bearerTokenRef: { namespace: 'kube-system', name: 'token', key: 'token' } },
      dispatchPolicies: [{ rules: [{ verbs: ['*'], apiGroups: ['*'], resources: ['*'] }] }],
    }
    const metadata = { name: 'references.example.com' }
    const object = JSON.stringify({
      apiVersion: 'proxy.kubegateway.io/v1alpha1',
      kind: 'UpstreamCluster',
      metadata,
      spec,
    })
    return attackHttp2(target, signal, options, (connection) => {
      const path = '/apis/proxy.kubegateway.io/v1alpha1/upstreamclusters'
      const post = request(head(target, 'POST', path, 'content-type', 'application/json'), 0)
      return closedLoop(connection, 4, (stream) =>
        Buffer.concat([post(stream), h2.data(stream, object, h2.END_STREAM)]),
      )
    })
  },
}
