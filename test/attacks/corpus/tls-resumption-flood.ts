// Handshakes that resume a session, and nothing behind them.

import type { Attack } from '../attack.ts'
import { attackConnections } from '../wire/connections.ts'

export const attack: Attack = {
  reference: 'TLS resumption flood',
  does: 'resumes a session on 32 connections at once, and closes them',
  who: ['known', 'unknown'],
  answers: [],
  run: (target, signal) => {
    const options = { alpn: 'h2', connections: 32, keepsSession: true } as const
    return attackConnections(target, signal, options, (wire) => {
      setTimeout(() => wire.close(), 2)
      return {}
    })
  },
}
