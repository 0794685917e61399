// Streams above the limit, each of which has to be refused.

import type { Attack } from '../attack.ts'
import { attackHttp2, head, request } from '../wire/http2.ts'

export const attack: Attack = {
  reference: 'CVE-2019-9514',
  does: 'opens streams that are never answered, above the limit',
  who: ['known', 'unknown'],
  answers: ['200', '401', '403', 'RST_STREAM REFUSED_STREAM'],
  must: ['RST_STREAM REFUSED_STREAM', 'GOAWAY ENHANCE_YOUR_CALM', 'closed', '429'],
  run: (target, signal) =>
    attackHttp2(target, signal, {}, (connection) => {
      const get = request(head(target, 'GET', '/api/v1/pods?hostile=never'))
      return { next: () => connection.batch(64, get) }
    }),
}
