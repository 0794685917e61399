// Handshakes with the embedded API server.

import type { Attack } from '../attack.ts'
import { attackConnections } from '../wire/connections.ts'

export const attack: Attack = {
  reference: 'TLS handshake flood',
  does: 'completes handshakes with port 9443, 16 at once, and closes them',
  who: ['known', 'unknown'],
  answers: [],
  run: (target, signal) => {
    const certificate = target.who === 'known' ? target.control.roleless : null
    return attackConnections(target, signal, { connections: 16, port: target.controlPort, certificate }, (wire) => {
      setImmediate(() => wire.close())
      return {}
    })
  },
}
