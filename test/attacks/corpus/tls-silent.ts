// TCP connections on which nothing is sent.

import type { Attack } from '../attack.ts'
import { attackConnections } from '../wire/connections.ts'

export const attack: Attack = {
  reference: 'hostile review 10',
  does: 'opens 300 TCP connections, and says nothing',
  who: ['unknown'],
  answers: [],
  run: (target, signal) => attackConnections(target, signal, { connections: 300, transport: 'tcp' }, () => ({})),
}
