// Lists of 200 MB of which the first megabyte is read.

import * as h2 from '../../harness/frames/h2-frames.ts'
import type { Attack } from '../attack.ts'
import { attackHttp2, closedLoop, head, request } from '../wire/http2.ts'

const LIST = '/api/v1/pods?bytes=200000000'

export const attack: Attack = {
  reference: 'lists that are not read',
  does: 'asks for 100 lists of 200 MB, and reads 1 MB of each',
  who: ['known', 'unknown'],
  // An answer without progress is reset when its user has too many of them.
  answers: ['200', '401', '403', 'RST_STREAM REFUSED_STREAM', 'RST_STREAM INTERNAL_ERROR'],
  run: (target, signal) =>
    attackHttp2(target, signal, { settings: [[h2.INITIAL_WINDOW_SIZE, 1_000_000]] }, (connection) =>
      closedLoop(connection, 100, request(head(target, 'GET', LIST))),
    ),
}
