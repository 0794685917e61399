// WINDOW_UPDATE frames of one byte.

import * as h2 from '../../harness/frames/h2-frames.ts'
import type { Attack } from '../attack.ts'
import { attackHttp2 } from '../wire/http2.ts'

const PIECE = Buffer.concat(new Array<Buffer>(200).fill(h2.windowUpdate(0, 1)))

export const attack: Attack = {
  reference: 'CVE-2019-9511',
  does: 'sends WINDOW_UPDATE frames',
  who: ['known', 'unknown'],
  answers: ['GOAWAY FLOW_CONTROL_ERROR'],
  must: ['GOAWAY ENHANCE_YOUR_CALM', 'closed'],
  run: (target, signal) => attackHttp2(target, signal, {}, () => ({ next: () => PIECE })),
}
