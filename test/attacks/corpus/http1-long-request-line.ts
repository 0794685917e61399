// A request line that is longer than any path.

import type { Attack } from '../attack.ts'
import { attackHttp1, head1 } from '../wire/http1.ts'

export const attack: Attack = {
  reference: 'hostile review 6',
  does: 'sends request lines of 1,000,000 bytes',
  who: ['known', 'unknown'],
  answers: ['400', '414', '431'],
  must: ['414', '431', 'closed'],
  run: (target, signal) => {
    const get = head1(target, `GET /version?${'a=b&'.repeat(250_000)}`)
    return attackHttp1(target, signal, { connections: 4 }, () => ({ next: () => get }))
  },
}
