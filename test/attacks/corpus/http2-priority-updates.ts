// PRIORITY_UPDATE frames (RFC 9218), for streams that are open, closed and not yet there.

import * as h2 from '../../harness/frames/h2-frames.ts'
import type { Attack } from '../attack.ts'
import { attackHttp2 } from '../wire/http2.ts'

const PRIORITY_UPDATE = 0x10
const PIECE = Buffer.concat(
  Array.from({ length: 200 }, (_, i) =>
    h2.frame(PRIORITY_UPDATE, 0, 0, Buffer.concat([h2.uint32(2 * i + 1), Buffer.from(`u=${i % 8}, i`)])),
  ),
)

export const attack: Attack = {
  reference: 'CVE-2019-9513, RFC 9218',
  does: 'sends PRIORITY_UPDATE frames for 200 streams in turn',
  who: ['known', 'unknown'],
  answers: [],
  must: ['GOAWAY ENHANCE_YOUR_CALM', 'closed'],
  run: (target, signal) => attackHttp2(target, signal, {}, () => ({ next: () => PIECE })),
}
