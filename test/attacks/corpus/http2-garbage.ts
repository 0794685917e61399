// Bytes that are no frames.

import type { Attack } from '../attack.ts'
import { attackHttp2 } from '../wire/http2.ts'

const PIECE = Buffer.from(Array.from({ length: 16_384 }, (_, i) => (i * 7_919 + (i >> 3)) & 0xff))

export const attack: Attack = {
  reference: 'protocol errors',
  does: 'sends random bytes behind the preface',
  who: ['known', 'unknown'],
  answers: [
    'GOAWAY FRAME_SIZE_ERROR',
    'GOAWAY PROTOCOL_ERROR',
    'GOAWAY COMPRESSION_ERROR',
    'GOAWAY STREAM_CLOSED',
    'GOAWAY FLOW_CONTROL_ERROR',
  ],
  must: ['GOAWAY FRAME_SIZE_ERROR', 'GOAWAY PROTOCOL_ERROR', 'closed'],
  run: (target, signal) => attackHttp2(target, signal, { connections: 4 }, () => ({ next: () => PIECE })),
}
