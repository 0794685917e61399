// Valid SelfSubjectReviews to the embedded API server, as fast as they are answered.

import * as h2 from '../../harness/frames/h2-frames.ts'
import type { Attack } from '../attack.ts'
import { attackHttp2, closedLoop, head, request } from '../wire/http2.ts'

const BODY = '{"apiVersion":"authentication.k8s.io/v1","kind":"SelfSubjectReview"}'

export const attack: Attack = {
  reference: 'hostile review 2',
  does: 'posts SelfSubjectReviews to port 9443',
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
    const certificate = target.who === 'known' ? target.control.roleless : null
    return attackHttp2(target, signal, { port: target.controlPort, certificate }, (connection) => {
      const path = '/apis/authentication.k8s.io/v1/selfsubjectreviews'
      const post = request(head(target, 'POST', path, 'content-type', 'application/json'), 0)
      return closedLoop(connection, 100, (stream) =>
        Buffer.concat([post(stream), h2.data(stream, BODY, h2.END_STREAM)]),
      )
    })
  },
}
