// Impersonation with extra values that are large, many, and of names that have to be decoded.

import type { Attack } from '../attack.ts'
import { attackHttp2, closedLoop, head, inTurn, request, SMALL_PATH } from '../wire/http2.ts'

const LARGE = Array.from({ length: 8 }, (_, i) => [`impersonate-extra-k${i}`, 'v'.repeat(100_000)]).flat()
const MANY = Array.from({ length: 3_000 }, (_, i) => [`impersonate-extra-k${i}`, `v${i}`]).flat()
const ENCODED = Array.from({ length: 200 }, (_, i) => [`impersonate-extra-${'%41'.repeat(500)}${i}`, 'v']).flat()
const INVALID = Array.from({ length: 200 }, (_, i) => [`impersonate-extra-${'%4'.repeat(500)}${i}`, 'v']).flat()

export const attack: Attack = {
  reference: 'hostile review 3',
  does: 'impersonates a user with 800,000 bytes, 3,000 values and 200 encoded names of extra',
  who: ['known', 'unknown'],
  answers: ['200', '400', '401', '403', '431', '503', 'RST_STREAM REFUSED_STREAM'],
  run: (target, signal) => {
    const requests = inTurn(
      [LARGE, MANY, ENCODED, INVALID].map((extra) =>
        request(head(target, 'GET', SMALL_PATH, 'impersonate-user', 'bob', ...extra)),
      ),
    )
    return attackHttp2(target, signal, { connections: 4 }, (connection) => closedLoop(connection, 5, requests))
  },
}
