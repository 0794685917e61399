// Complete handshakes, and nothing behind them: each costs the gateway a signature.

import type { Attack } from '../attack.ts'
import { attackConnections } from '../wire/connections.ts'

export const attack: Attack = {
  reference: 'TLS handshake flood',
  does: 'completes handshakes on 32 connections at once, and closes them',
  who: ['known', 'unknown'],
  answers: [],
  run: (target, signal) =>
    attackConnections(target, signal, { connections: 32, alpn: 'h2', tls: { ALPNProtocols: ['h2'] } }, (wire) => {
      setImmediate(() => wire.close())
      return {}
    }),
}
