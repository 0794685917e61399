// SETTINGS frames with as many entries as fit.

import * as h2 from '../../harness/frames/h2-frames.ts'
import type { Attack } from '../attack.ts'
import { attackHttp2 } from '../wire/http2.ts'

const ENTRIES = Array.from({ length: 2_730 }, (_, i) => [h2.INITIAL_WINDOW_SIZE, 65_535 + (i % 2)] as const)
const PIECE = Buffer.concat(new Array<Buffer>(8).fill(h2.settings(...ENTRIES)))

export const attack: Attack = {
  reference: 'CVE-2020-11080',
  does: 'sends SETTINGS with 2,730 changes of the window each',
  who: ['known', 'unknown'],
  answers: [],
  must: ['GOAWAY ENHANCE_YOUR_CALM', 'closed'],
  run: (target, signal) => attackHttp2(target, signal, {}, () => ({ next: () => PIECE })),
}
