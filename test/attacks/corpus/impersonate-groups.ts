// Impersonation of a user with as many groups as are allowed: an access review each.

import type { Attack } from '../attack.ts'
import { attackHttp2, closedLoop, head, request, SMALL_PATH } from '../wire/http2.ts'

const GROUPS = Array.from({ length: 255 }, (_, i) => ['impersonate-group', `group-${i}`]).flat()

export const attack: Attack = {
  reference: 'hostile review 3',
  does: 'impersonates a user with 255 groups',
  who: ['known', 'unknown'],
  answers: ['200', '401', '403', 'RST_STREAM REFUSED_STREAM'],
  run: (target, signal) =>
    attackHttp2(target, signal, {}, (connection) =>
      closedLoop(connection, 20, request(head(target, 'GET', SMALL_PATH, 'impersonate-user', 'bob', ...GROUPS))),
    ),
}
