// Lists of 200 MB as fast as they come.

import type { Attack } from '../attack.ts'
import { attackHttp2, closedLoop, head, request } from '../wire/http2.ts'

const LIST = '/api/v1/pods?bytes=200000000'

export const attack: Attack = {
  reference: 'large lists',
  does: 'reads 20 lists of 200 MB at once at full speed',
  who: ['known', 'unknown'],
  answers: ['200', '401', '403', 'RST_STREAM REFUSED_STREAM'],
  run: (target, signal) =>
    attackHttp2(target, signal, { connections: 4 }, (connection) =>
      closedLoop(connection, 5, request(head(target, 'GET', LIST))),
    ),
}
