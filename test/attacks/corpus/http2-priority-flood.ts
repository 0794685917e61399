// PRIORITY frames that change a tree of dependencies again and again.

import * as h2 from '../../harness/frames/h2-frames.ts'
import type { Attack } from '../attack.ts'
import { attackHttp2 } from '../wire/http2.ts'

const PIECE = Buffer.concat(Array.from({ length: 200 }, (_, i) => h2.priority(2 * i + 1, 2 * i + 3)))

export const attack: Attack = {
  reference: 'CVE-2019-9513',
  does: 'sends PRIORITY frames',
  who: ['known', 'unknown'],
  answers: [],
  must: ['GOAWAY ENHANCE_YOUR_CALM', 'closed'],
  run: (target, signal) => attackHttp2(target, signal, {}, () => ({ next: () => PIECE })),
}
