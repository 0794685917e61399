// Upgrades to protocols and on paths that have none.

import type { Attack } from '../attack.ts'
import { attackHttp1, head1 } from '../wire/http1.ts'

export const attack: Attack = {
  reference: 'upgrade abuse',
  does: 'asks for upgrades of small objects',
  who: ['known', 'unknown'],
  answers: ['101', '200', '400', '401', '403', '404', '501', '502', '503'],
  run: (target, signal) => {
    const get = head1(target, 'GET /api/v1/namespaces/default/configmaps/small', 'Connection: Upgrade', 'Upgrade: h2c')
    return attackHttp1(target, signal, { connections: 16 }, (wire) => {
      const pieces = [get]
      return { next: () => pieces.shift(), answered: () => wire.close() }
    })
  },
}
