// A chunked body that is followed by trailers without end.

import type { Attack } from '../attack.ts'
import { attackHttp1, head1 } from '../wire/http1.ts'

const TRAILERS = Buffer.from('X-Trailer: v\r\n'.repeat(1_000))

export const attack: Attack = {
  reference: 'hostile review 4',
  does: 'sends trailers without end behind a chunked body',
  who: ['known', 'unknown'],
  answers: ['200', '400', '401', '403', '431'],
  run: (target, signal) => {
    const post = head1(target, 'POST /api/v1/namespaces/default/configmaps', 'Transfer-Encoding: chunked')
    return attackHttp1(target, signal, {}, () => {
      const pieces = [Buffer.concat([post, Buffer.from('2\r\n{}\r\n0\r\n')])]
      return { next: () => pieces.shift() ?? TRAILERS }
    })
  },
}
