// Heads of short fields, as many as fit.

import type { Attack } from '../attack.ts'
import { attackHttp1, head1 } from '../wire/http1.ts'

const FIELDS = Array.from({ length: 10_000 }, (_, i) => `X-${i}: v`)

export const attack: Attack = {
  reference: 'header flood',
  does: 'sends heads with 10,000 short fields',
  who: ['known', 'unknown'],
  answers: ['400', '431'],
  must: ['431', 'closed'],
  run: (target, signal) => {
    const get = head1(target, 'GET /version', ...FIELDS)
    return attackHttp1(target, signal, { connections: 4 }, () => ({ next: () => get }))
  },
}
