// Frames of types that no RFC defines.

import * as h2 from '../../harness/frames/h2-frames.ts'
import type { Attack } from '../attack.ts'
import { attackHttp2 } from '../wire/http2.ts'

const PIECE = Buffer.concat(new Array<Buffer>(200).fill(h2.frame(0x42, 0, 0, Buffer.alloc(8))))

export const attack: Attack = {
  reference: 'unknown frames',
  does: 'sends frames of unknown types',
  who: ['known', 'unknown'],
  answers: [],
  must: ['GOAWAY ENHANCE_YOUR_CALM', 'closed'],
  run: (target, signal) => attackHttp2(target, signal, {}, () => ({ next: () => PIECE })),
}
