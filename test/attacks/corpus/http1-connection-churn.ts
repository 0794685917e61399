// A connection of HTTP/1.1 for each request.

import type { Attack } from '../attack.ts'
import { attackHttp1, head1 } from '../wire/http1.ts'

export const attack: Attack = {
  reference: 'connection churn',
  does: 'opens 16 connections at once, asks once on each, and closes them',
  who: ['known', 'unknown'],
  answers: ['200', '401', '403'],
  run: (target, signal) => {
    const get = head1(target, 'GET /api/v1/namespaces/default/configmaps/small', 'Connection: close')
    return attackHttp1(target, signal, { connections: 16 }, (wire) => {
      const pieces = [get]
      return { next: () => pieces.shift(), answered: () => wire.close() }
    })
  },
}
