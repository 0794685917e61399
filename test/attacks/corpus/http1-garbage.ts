// Bytes that are no request, on ever new connections.

import type { Attack } from '../attack.ts'
import { attackHttp1 } from '../wire/http1.ts'

const GARBAGE = Buffer.from('\x00\xffNO REQUEST\r\n\r\n'.repeat(200), 'latin1')

export const attack: Attack = {
  reference: 'protocol errors',
  does: 'sends what is no request',
  who: ['known', 'unknown'],
  answers: ['400'],
  must: ['400', 'closed'],
  run: (target, signal) => attackHttp1(target, signal, { connections: 8 }, () => ({ next: () => GARBAGE })),
}
