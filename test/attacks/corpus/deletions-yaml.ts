// Deletions with a body of nothing but braces, in YAML.

import * as h2 from '../../harness/frames/h2-frames.ts'
import type { Attack } from '../attack.ts'
import { attackHttp2, closedLoop, head, request } from '../wire/http2.ts'

const BODY = '}'.repeat(16_000)

export const attack: Attack = {
  reference: 'hostile review 1',
  does: 'deletes pods with 240 KB of braces as YAML',
  who: ['known', 'unknown'],
  answers: [
    '400',
    '401',
    '403',
    '413',
    '415',
    'RST_STREAM NO_ERROR',
    'RST_STREAM CANCEL',
    'RST_STREAM STREAM_CLOSED',
    'RST_STREAM REFUSED_STREAM',
    'GOAWAY FLOW_CONTROL_ERROR',
  ],
  must: ['400', '401', '403', '413', '415', '429', 'closed'],
  run: (target, signal) =>
    attackHttp2(target, signal, {}, (connection) => {
      const block = head(target, 'DELETE', '/api/v1/namespaces/default/pods/web-0', 'content-type', 'application/yaml')
      const remove = request(block, 0)
      return closedLoop(connection, 10, (stream) =>
        Buffer.concat([
          remove(stream),
          ...new Array<Buffer>(14).fill(h2.data(stream, BODY)),
          h2.data(stream, BODY, h2.END_STREAM),
        ]),
      )
    }),
}
