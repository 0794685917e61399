// Frames that begin and do not end.

import * as h2 from '../../harness/frames/h2-frames.ts'
import type { Attack } from '../attack.ts'
import { attackHttp2 } from '../wire/http2.ts'

export const attack: Attack = {
  reference: 'slow frames',
  does: 'sends the first bytes of a frame on 200 connections, and no more',
  who: ['known', 'unknown'],
  answers: [],
  run: (target, signal) =>
    attackHttp2(target, signal, { connections: 200 }, () => {
      const pieces = [h2.headersFrames(1, Buffer.alloc(1_000)).subarray(0, 20)]
      return { next: () => pieces.shift() }
    }),
}
