// A request head of HTTP/1.1 that fits when its bytes are counted, and not as HTTP/2 counts it (32 more for each field).

import type { Attack } from '../attack.ts'
import { attackHttp1, head1 } from '../wire/http1.ts'

const FIELDS = Array.from({ length: 1_980 }, (_, i) => `X-Field-${i}: ${'v'.repeat(490)}`)

export const attack: Attack = {
  reference: 'hostile review 4',
  does: 'sends heads with 1,980 fields over HTTP/1.1',
  who: ['known', 'unknown'],
  answers: ['431'],
  must: ['431', 'closed'],
  run: (target, signal) => {
    const get = head1(target, 'GET /version', ...FIELDS)
    return attackHttp1(target, signal, {}, () => ({ next: () => get }))
  },
}
