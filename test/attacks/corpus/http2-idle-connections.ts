// Connections on which nothing is asked.

import type { Attack } from '../attack.ts'
import { attackHttp2 } from '../wire/http2.ts'

export const attack: Attack = {
  reference: 'hostile review 10',
  does: 'opens 300 connections, and asks nothing',
  who: ['known', 'unknown'],
  answers: [],
  run: (target, signal) => attackHttp2(target, signal, { connections: 300 }, () => ({})),
}
