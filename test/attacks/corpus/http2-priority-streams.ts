// PRIORITY frames for streams that are never opened, each another one.

import * as h2 from '../../harness/frames/h2-frames.ts'
import type { Attack } from '../attack.ts'
import { attackHttp2 } from '../wire/http2.ts'

export const attack: Attack = {
  reference: 'CVE-2019-9513, CVE-2023-35945',
  does: 'sends PRIORITY frames for 1,000,000 different streams',
  who: ['known', 'unknown'],
  answers: [],
  must: ['GOAWAY ENHANCE_YOUR_CALM', 'closed'],
  run: (target, signal) =>
    attackHttp2(target, signal, {}, (connection) => ({
      next: () => connection.batch(200, (stream) => h2.priority(stream, 0)),
    })),
}
