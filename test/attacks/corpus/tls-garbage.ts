// Bytes that are no TLS.

import type { Attack } from '../attack.ts'
import { attackConnections } from '../wire/connections.ts'

const BYTES = Buffer.from('GET / HTTP/1.1\r\nHost: a\r\n\r\n'.repeat(50))

export const attack: Attack = {
  reference: 'no TLS',
  does: 'sends what is no TLS, on ever new connections',
  who: ['unknown'],
  answers: [],
  run: (target, signal) =>
    attackConnections(target, signal, { connections: 16, transport: 'tcp' }, () => ({ next: () => BYTES })),
}
