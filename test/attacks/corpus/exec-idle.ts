// Sessions of exec in which nothing happens.

import type { Attack } from '../attack.ts'
import { attackHttp1, head1 } from '../wire/http1.ts'

const EXEC = '/api/v1/namespaces/default/pods/web-0/exec?command=sh'

export const attack: Attack = {
  reference: 'idle exec sessions',
  does: 'opens 300 sessions of exec, and says nothing',
  who: ['known', 'unknown'],
  answers: ['101', '200', '401', '403', '502', '503'],
  run: (target, signal) => {
    const post = head1(target, `POST ${EXEC}`, 'Connection: Upgrade', 'Upgrade: SPDY/3.1')
    return attackHttp1(target, signal, { connections: 300 }, () => {
      const pieces = [post]
      return { next: () => pieces.shift() }
    })
  },
}
