// SETTINGS whose values are not allowed: each ends its connection.

import * as h2 from '../../harness/frames/h2-frames.ts'
import type { Attack } from '../attack.ts'
import { attackHttp2 } from '../wire/http2.ts'

const INVALID = [
  h2.settings([h2.MAX_FRAME_SIZE, 2 ** 24]),
  h2.settings([h2.MAX_FRAME_SIZE, 16_383]),
  h2.settings([h2.INITIAL_WINDOW_SIZE, 2 ** 31]),
  // ENABLE_PUSH
  h2.settings([2, 2]),
  h2.frame(h2.SETTINGS, 0, 0, Buffer.alloc(5)),
  h2.frame(h2.SETTINGS, h2.ACK, 0, Buffer.alloc(6)),
  h2.frame(h2.SETTINGS, 0, 1, Buffer.alloc(6)),
]

export const attack: Attack = {
  reference: 'extreme SETTINGS',
  does: 'sends SETTINGS with values that are not allowed, on ever new connections',
  who: ['known', 'unknown'],
  answers: ['GOAWAY PROTOCOL_ERROR', 'GOAWAY FLOW_CONTROL_ERROR', 'GOAWAY FRAME_SIZE_ERROR'],
  must: ['GOAWAY PROTOCOL_ERROR', 'GOAWAY FLOW_CONTROL_ERROR', 'GOAWAY FRAME_SIZE_ERROR'],
  run: (target, signal) => {
    let n = 0
    return attackHttp2(target, signal, { connections: 16 }, () => {
      const frames = [INVALID[n++ % INVALID.length]]
      return { next: () => frames.shift() }
    })
  },
}
