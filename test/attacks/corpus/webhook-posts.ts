// Unrequested reviews, to the webhook of pod protection.

import * as h2 from '../../harness/frames/h2-frames.ts'
import type { Attack } from '../attack.ts'
import { attackHttp2, closedLoop, head, request } from '../wire/http2.ts'

const BODY = '['.repeat(16_000)

export const attack: Attack = {
  reference: 'hostile review 7',
  does: 'posts reviews to the webhook of pod protection',
  who: ['known', 'unknown'],
  answers: [
    '200',
    '400',
    '401',
    '403',
    '404',
    '413',
    '415',
    'RST_STREAM NO_ERROR',
    'RST_STREAM CANCEL',
    'RST_STREAM REFUSED_STREAM',
    'GOAWAY PROTOCOL_ERROR',
    'GOAWAY FLOW_CONTROL_ERROR',
  ],
  must: ['401', '403', '404', '400', '429', 'closed'],
  run: (target, signal) => {
    const certificate = target.who === 'known' ? target.control.roleless : null
    return attackHttp2(target, signal, { port: target.webhookPort, certificate }, (connection) => {
      const post = request(head(target, 'POST', `/${target.host}`, 'content-type', 'application/json'), 0)
      return closedLoop(connection, 20, (stream) =>
        Buffer.concat([post(stream), h2.data(stream, BODY), h2.data(stream, BODY, h2.END_STREAM)]),
      )
    })
  },
}
