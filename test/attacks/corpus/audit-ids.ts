// Audit-IDs that a client may choose: those of others, long ones, several, and such as end a line of a log.

import type { Attack } from '../attack.ts'
import { attackHttp2, closedLoop, head, inTurn, request, SMALL_PATH } from '../wire/http2.ts'

const IDS: readonly (readonly string[])[] = [
  ['audit-id', '00000000-0000-0000-0000-000000000000'],
  ['audit-id', 'x'.repeat(100_000)],
  ['audit-id', '{"level":"error","msg":"forged"}'],
  ['audit-id', 'a\tb\u0085c'],
  ['audit-id', ''],
  new Array<string[]>(1_000).fill(['audit-id', 'again']).flat(),
]

export const attack: Attack = {
  reference: 'audit-ID abuse',
  does: 'chooses Audit-IDs of 100,000 bytes, a thousand of them, and those of others',
  who: ['known', 'unknown'],
  answers: ['200', '400', '401', '403', 'RST_STREAM REFUSED_STREAM', 'RST_STREAM PROTOCOL_ERROR'],
  must: ['200', '400', '401', '403'],
  run: (target, signal) => {
    const requests = inTurn(IDS.map((fields) => request(head(target, 'GET', SMALL_PATH, ...fields))))
    return attackHttp2(target, signal, { connections: 4 }, (connection) => closedLoop(connection, 20, requests))
  },
}
