// Client certificates that no cluster has asked for.

import type { Attack } from '../attack.ts'
import { attackHttp2, head, request, SMALL_PATH } from '../wire/http2.ts'

export const attack: Attack = {
  reference: 'client certificates of another CA',
  does: 'shows certificates of a CA of its own',
  who: ['unknown'],
  answers: ['401', '403', '200'],
  run: (target, signal) => {
    const certificate = target.control.roleless
    return attackHttp2(target, signal, { connections: 16, certificate }, (connection) => {
      const get = request(head(target, 'GET', SMALL_PATH))
      const pieces = [connection.batch(1, get)]
      return { next: () => pieces.shift(), ended: () => connection.wire.close() }
    })
  },
}
