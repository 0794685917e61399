// SelfSubjectReviews in YAML of nothing but braces, to the embedded API server.

import * as h2 from '../../harness/frames/h2-frames.ts'
import type { Attack } from '../attack.ts'
import { attackHttp2, closedLoop, head, request } from '../wire/http2.ts'

const BODY = '}'.repeat(16_000)

export const attack: Attack = {
  reference: 'hostile review 2',
  does: 'posts SelfSubjectReviews of 32 KB of braces as YAML to port 9443',
  who: ['known', 'unknown'],
  answers: [
    '400',
    '401',
    '403',
    '413',
    '415',
    'RST_STREAM NO_ERROR',
    'RST_STREAM CANCEL',
    'RST_STREAM REFUSED_STREAM',
    'GOAWAY FLOW_CONTROL_ERROR',
  ],
  must: ['400', '401', '403', '413', '415', '429', 'closed'],
  run: (target, signal) => {
    const certificate = target.who === 'known' ? target.control.roleless : null
    return attackHttp2(target, signal, { port: target.controlPort, certificate }, (connection) => {
      const path = '/apis/authentication.k8s.io/v1/selfsubjectreviews'
      const post = request(head(target, 'POST', path, 'content-type', 'application/yaml'), 0)
      return closedLoop(connection, 20, (stream) =>
        Buffer.concat([post(stream), h2.data(stream, BODY), h2.data(stream, BODY, h2.END_STREAM)]),
      )
    })
  },
}
