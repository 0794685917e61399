// What is no TLS, at the ports of control plane and webhook.

import type { Attack } from '../attack.ts'
import { attackConnections } from '../wire/connections.ts'

const BYTES = Buffer.from('GET / HTTP/1.1\r\nHost: a\r\n\r\n'.repeat(50))

export const attack: Attack = {
  reference: 'no TLS',
  does: 'sends what is no TLS to port 9443 and to the webhook, on ever new connections',
  who: ['unknown'],
  answers: [],
  must: ['closed'],
  run: async (target, signal) => {
    await Promise.all(
      [target.controlPort, target.webhookPort].map((port) =>
        attackConnections(target, signal, { connections: 8, transport: 'tcp', port }, () => ({ next: () => BYTES })),
      ),
    )
  },
}
