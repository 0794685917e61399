// Empty lines in front of a request that never comes.

import type { Attack } from '../attack.ts'
import { attackHttp1 } from '../wire/http1.ts'

const LINES = Buffer.from('\r\n'.repeat(8_000))

export const attack: Attack = {
  reference: 'empty lines',
  does: 'sends empty lines without end',
  who: ['known', 'unknown'],
  answers: ['400', '408'],
  run: (target, signal) => attackHttp1(target, signal, {}, () => ({ next: () => LINES })),
}
