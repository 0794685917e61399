// What clients of a WebSocket send of which the gateway itself is the server: the handshake, and frames.

import { MAX_LISTED_LENGTH } from '../../../src/gateway/core/request/request-head.ts'
import { WebSocketReader, type WebSocketSink } from '../../../src/gateway/core/websocket/websocket-reader.ts'
import { readHandshake } from '../../../src/gateway/request/exchange/open-websocket.ts'
import { bytes, type Parser, parserOf } from '../parser.ts'
import { MIB, repeat } from '../shapes.ts'

const KEY = ['sec-websocket-key', 'a', 'sec-websocket-version', '13']

/** As the server of watches reads them. */
function reader(): WebSocketReader {
  const sink: WebSocketSink = {
    wants: false,
    begin: () => undefined,
    add: () => undefined,
    end: () => undefined,
    control: (_, payload) => Buffer.from(payload),
    malformed: (what) => new Error(what),
  }
  return new WebSocketReader({ isMasked: true, inOneFrame: false }, sink)
}

export const PARSERS: readonly Parser[] = [
  parserOf({
    name: 'handshake of a WebSocket, its subprotocols',
    limit: MAX_LISTED_LENGTH,
    prepare: (text) => [...KEY, 'origin', 'https://a', 'sec-websocket-protocol', text],
    read: readHandshake,
    tokens: [',', ' ', '\t', 'binary.k8s.io'],
    shapes: {
      commas: repeat(','),
      blanks: repeat(' '),
      'blanks in the middle': repeat(' ', 'a', 'b'),
      names: repeat('a{n},'),
    },
  }),
  parserOf({
    name: 'handshake of a WebSocket, its origin',
    limit: MIB,
    prepare: (text) => [...KEY, 'origin', text],
    read: readHandshake,
    tokens: ['https://', 'a', '+', '.', ':', '/'],
    shapes: { letters: repeat('a'), colons: repeat(':'), 'points and signs': repeat('.+-', 'a') },
  }),
  parserOf({
    name: 'frames of a client',
    limit: MIB,
    prepare: (text) => ({ frames: reader(), chunk: bytes(text) }),
    read: ({ frames, chunk }) => frames.read(chunk),
    tokens: ['\x82', '\x81', '\x02', '\x00', '\x80', '\x89', '\xfe', '\xff', '\x01', '\x85', '\x88'],
    shapes: {
      'small messages': repeat('\x82\x81\x00\x00\x00\x00a'),
      'empty messages': repeat('\x82\x80\x00\x00\x00\x00'),
      'a message in parts': repeat('\x00\x81\x00\x00\x00\x00a', '\x02\x81\x00\x00\x00\x00a'),
      pings: repeat('\x89\x81\x00\x00\x00\x00a'),
      'long pings': repeat(`\x89\xfd\x01\x02\x03\x04${'a'.repeat(125)}`),
      closes: repeat('\x88\x80\x00\x00\x00\x00'),
      'a long message': repeat('a', '\x82\xff\x00\x00\x00\x00\x10\x00\x00\x00\x01\x02\x03\x04'),
    },
  }),
]
