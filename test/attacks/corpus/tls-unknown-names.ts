// Handshakes that name clusters that do not exist, each another one.

import type { Attack } from '../attack.ts'
import { attackConnections } from '../wire/connections.ts'

export const attack: Attack = {
  reference: 'server names without end',
  does: 'completes handshakes that name unknown clusters',
  who: ['unknown'],
  answers: [],
  run: (target, signal) => {
    let n = 0
    const options = { connections: 32, servername: () => `none-${n++}.example.com` }
    return attackConnections(target, signal, options, (wire) => {
      setImmediate(() => wire.close())
      return {}
    })
  },
}
