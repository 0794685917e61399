// Requests in a row, none of which waits for an answer.

import type { Attack } from '../attack.ts'
import { attackHttp1, head1 } from '../wire/http1.ts'

const PATH = '/api/v1/namespaces/default/configmaps/small'

export const attack: Attack = {
  reference: 'pipelining of 100,000 requests',
  does: 'sends requests over HTTP/1.1 without waiting',
  who: ['known', 'unknown'],
  answers: ['200', '401', '403'],
  run: (target, signal) => {
    const piece = Buffer.concat(new Array<Buffer>(100).fill(head1(target, `GET ${PATH}`)))
    return attackHttp1(target, signal, {}, () => ({ next: () => piece }))
  },
}
