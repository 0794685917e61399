// The first message of a handshake, and nothing more.

import type { Attack } from '../attack.ts'
import { clientHello } from '../wire/client-hello.ts'
import { attackConnections } from '../wire/connections.ts'

export const attack: Attack = {
  reference: 'half-open handshakes',
  does: 'begins a handshake on 300 connections, and does not go on',
  who: ['unknown'],
  answers: [],
  run: async (target, signal) => {
    const hello = await clientHello(target.host)
    await attackConnections(target, signal, { connections: 300, transport: 'tcp' }, () => {
      const pieces = [hello]
      return { next: () => pieces.shift() }
    })
  },
}
