// HTTP/2 from upstream: what an API server, or who is in its place, sends to the gateway's side of a connection.

import { ClientConnection } from '../../../src/http2/client.ts'
import { createHttp2Counters } from '../../../src/http2/counters.ts'
import { CLIENT_SIDE_LIMITS } from '../../../src/http2/limits.ts'
import { NO_LISTENER } from '../../../src/http2/stream.ts'
import * as h2 from '../../harness/frames/h2-frames.ts'
import { bytes, type Parser, parserOf } from '../parser.ts'
import { KIB, MIB, repeat, type Shape } from '../shapes.ts'

const text = (buffer: Buffer): string => buffer.toString('latin1')
const DRIVER = { onOutput: () => undefined, onClosed: () => undefined }
const CLIENT_EVENTS = {
  onReady: () => undefined,
  onStreamGone: () => undefined,
  onSuspects: () => undefined,
  onEnding: () => undefined,
  onSlotFree: () => undefined,
  onGoaway: () => undefined,
}
const COUNTERS = createHttp2Counters()
const REQUEST = [':method', 'GET', ':path', '/', ':scheme', 'https', ':authority', 'a']
const OPENED = 100

function receive(frames: Buffer): void {
  const connection = new ClientConnection(CLIENT_SIDE_LIMITS, COUNTERS, DRIVER, CLIENT_EVENTS, 0)
  connection.receive(h2.frame(h2.SETTINGS, 0, 0), 0)
  for (let n = 0; n < OPENED; n++) connection.open(REQUEST, undefined, true, NO_LISTENER)
  for (let at = 0; at < frames.length; at += 16 * KIB) {
    connection.receive(frames.subarray(at, at + 16 * KIB), 0)
    const taken: Buffer[] = []
    connection.takeOutput(128 * KIB, taken)
    connection.releaseOutput()
  }
}

const head = (list: readonly string[], flags: number = h2.END_HEADERS): string =>
  text(h2.frame(h2.HEADERS, flags, 1, h2.headerBlock(list)))
const OK = head([':status', '200'])
const FIELDS = Array.from({ length: 200 }, (_, n) => [`a${n}`, 'b']).flat()

const FRAMES: Readonly<Record<string, Shape>> = {
  'interim answers': repeat(head([':status', '103', 'link', 'a'])),
  'heads again and again': repeat(OK),
  'heads of many fields': repeat(head([':status', '103', ...FIELDS])),
  trailers: repeat(head(['a', 'b'], h2.END_HEADERS | h2.END_STREAM), OK),
  'DATA of one byte': repeat(text(h2.frame(h2.DATA, 0, 1, Buffer.from('a'))), OK),
  'empty DATA': repeat(text(h2.frame(h2.DATA, 0, 1)), OK),
  'DATA that is padding': repeat(text(h2.frame(h2.DATA, h2.PADDED, 1, Buffer.from([9, ...Buffer.alloc(9)]))), OK),
  'long DATA': repeat(text(h2.frame(h2.DATA, 0, 1, Buffer.alloc(1000))), OK),
  'DATA without a head': repeat(text(h2.frame(h2.DATA, 0, 3, Buffer.from('a')))),
  'DATA of closed streams': repeat(
    text(h2.frame(h2.DATA, 0, 1, Buffer.from('a'))),
    OK + text(h2.frame(h2.RST_STREAM, 0, 1, Buffer.alloc(4))),
  ),
  SETTINGS: repeat(text(h2.frame(h2.SETTINGS, 0, 0))),
  'SETTINGS that change all windows': repeat(
    text(h2.frame(h2.SETTINGS, 0, 0, Buffer.from([0, 4, 0, 0, 0xff, 0xff]))) +
      text(h2.frame(h2.SETTINGS, 0, 0, Buffer.from([0, 4, 0, 0, 0, 1]))),
  ),
  'SETTINGS of tables': repeat(text(h2.frame(h2.SETTINGS, 0, 0, Buffer.from([0, 1, 0, 0, 0, 0, 0, 1, 0, 0, 16, 0])))),
  PINGs: repeat(text(h2.frame(h2.PING, 0, 0, Buffer.alloc(8)))),
  'window updates': repeat(text(h2.frame(h2.WINDOW_UPDATE, 0, 0, Buffer.from([0, 0, 0, 1])))),
  'window updates of a stream': repeat(text(h2.frame(h2.WINDOW_UPDATE, 0, 1, Buffer.from([0, 0, 0, 1])))),
  'streams that are reset': repeat(text(h2.frame(h2.RST_STREAM, 0, 1, Buffer.alloc(4)))),
  'GOAWAY of all streams': repeat(text(h2.frame(h2.GOAWAY, 0, 0, Buffer.from([0x7f, 255, 255, 255, 0, 0, 0, 0])))),
  'GOAWAY with a long text': repeat('a', text(h2.frame(h2.GOAWAY, 0, 0, Buffer.alloc(8)))),
  'pushed streams': repeat(text(h2.frame(5, h2.END_HEADERS, 1, Buffer.from([0, 0, 0, 2])))),
  'unknown frames': repeat(text(h2.frame(99, 0, 0))),
  'CONTINUATION of lists that are too large': repeat(
    text(h2.frame(h2.CONTINUATION, 0, 1, Buffer.alloc(8000, 0x88))),
    text(h2.frame(h2.HEADERS, 0, 1, h2.headerBlock([':status', '200']))),
  ),
  'CONTINUATION of one byte': repeat(
    text(h2.frame(h2.CONTINUATION, 0, 1, Buffer.from([0x88]))),
    text(h2.frame(h2.HEADERS, 0, 1, h2.headerBlock([':status', '200']))),
  ),
}

export const PARSERS: readonly Parser[] = [
  parserOf({
    name: 'HTTP/2 frames of upstream',
    limit: MIB,
    prepare: bytes,
    read: receive,
    tokens: Object.values(FRAMES).flatMap((shape) => ('parts' in shape ? shape.parts.map((part) => part.text) : [])),
    shapes: FRAMES,
  }),
]
