// Impersonation with extra values that are large, many, and of names that have to be decoded: as much as is permitted, and more.

import type { Attack } from '../attack.ts'
import { attackHttp2, closedLoop, head, inTurn, request, SMALL_PATH } from '../wire/http2.ts'

function extra(count: number, name: string, value: string): string[] {
  return Array.from({ length: count }, (_, i) => [`impersonate-extra-${name}${i}`, value]).flat()
}

const FIELDS: readonly (readonly string[])[] = [
  extra(7, 'k', 'v'.repeat(9_000)),
  extra(250, 'k', 'v'),
  extra(40, '%41'.repeat(500), 'v'),
  extra(40, '%4'.repeat(500), 'v'),
  extra(8, 'k', 'v'.repeat(100_000)),
  extra(3_000, 'k', 'v'),
]

export const attack: Attack = {
  reference: 'hostile review 3',
  does: 'impersonates a user with 63,000 bytes, 250 values and 40 encoded names of extra, and with more than is permitted',
  who: ['known', 'unknown'],
  answers: ['200', '400', '401', '403', '431', '503', 'RST_STREAM REFUSED_STREAM'],
  must: ['400', '401'],
  run: (target, signal) => {
    const requests = inTurn(
      FIELDS.map((fields) => request(head(target, 'GET', SMALL_PATH, 'impersonate-user', 'bob', ...fields))),
    )
    return attackHttp2(target, signal, { connections: 4 }, (connection) => closedLoop(connection, 5, requests))
  },
}
