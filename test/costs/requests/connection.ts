// What comes before requests, and around them: PROXY headers, HTTP/2 frames and header blocks, HTTP/1.1 messages.

import { ProxyHeaderReader } from '../../../src/gateway/core/proxy-protocol/proxy-header.ts'
import { createHttp2Counters } from '../../../src/http2/counters.ts'
import { HpackDecoder } from '../../../src/http2/hpack/decoder.ts'
import { SERVER_LIMITS } from '../../../src/http2/limits.ts'
import { ServerConnection } from '../../../src/http2/server.ts'
import { NO_LISTENER } from '../../../src/http2/stream.ts'
import type { Peer } from '../../../src/kit/api/stream.ts'
import * as h2 from '../../harness/frames/h2-frames.ts'
import { bytes, type Parser, parserOf } from '../parser.ts'
import { KIB, MIB, repeat, type Shape } from '../shapes.ts'

const text = (buffer: Buffer): string => buffer.toString('latin1')
const V2 = '\r\n\r\n\0\r\nQUIT\n'
/** The head of version 2, TCP over IPv4, with two addresses and ports, then TLVs of all that is left of `length`. */
function versionTwo(tlv: string): Shape {
  return (length) => {
    const tlvs = tlv.repeat(Math.max(1, Math.floor((length - 28) / tlv.length)))
    const size = 12 + tlvs.length
    return `${V2}\x21\x11${String.fromCharCode(size >> 8, size & 0xff)}\x01\x02\x03\x04\x05\x06\x07\x08\0\x01\0\x02${tlvs}`
  }
}

const BLOCKS: Readonly<Record<string, Shape>> = {
  'indexed fields': repeat('\x82'),
  'fields of the dynamic table': repeat('\xbe', '\x40\x01a\x01b'),
  'fields that enter the table': repeat('\x40\x02a{n}\x01b'),
  'fields that push others out': repeat(`${'\x40\x7f\x01'.padEnd(131, 'a')}\x01b`),
  'size updates': repeat('\x3f\xe1\x1f'),
  'size updates up and down': repeat('\x20\x3f\xe1\x1f'),
  'literals without index': repeat('\x00\x01a\x01b'),
  'empty literals': repeat('\x00\x01a\x00'),
  'Huffman codes': repeat('\x00\x01a\x84\xff\xff\xff\xff'),
  'short Huffman codes': repeat('\x00\x01a\x84\x00\x00\x00\x00'),
  'numbers without end': repeat('\xff'),
  'a long number': repeat('\x80', '\xff'),
  'a long literal': (length) => {
    const size = length - 8 - 0x7f
    const encoded = [(size & 0x7f) | 0x80, ((size >> 7) & 0x7f) | 0x80, (size >> 14) & 0x7f]
    return `\x00\x01a\x7f${String.fromCharCode(...encoded)}${'a'.repeat(length - 8)}`
  },
  'content lengths': repeat('\x0f\x0d\x0212'),
  'names in upper case': repeat('\x00\x01A\x01b'),
}

const DRIVER = { onOutput: () => undefined, onClosed: () => undefined }
const COUNTERS = createHttp2Counters()
const OPENING = Buffer.concat([Buffer.from(h2.PREFACE), h2.frame(h2.SETTINGS, 0, 0)])

function receive(frames: Buffer): void {
  // Only what the engine uses of it.
  const connection = new ServerConnection(SERVER_LIMITS, COUNTERS, DRIVER, { id: 1 } as Peer, () => NO_LISTENER, 0)
  connection.receive(OPENING, 0)
  for (let at = 0; at < frames.length; at += 16 * KIB) {
    connection.receive(frames.subarray(at, at + 16 * KIB), 0)
    const taken: Buffer[] = []
    connection.takeOutput(128 * KIB, taken)
    connection.releaseOutput()
  }
}

const HEAD = h2.headerBlock([':method', 'GET', ':path', '/', ':scheme', 'https', ':authority', 'a'])
const stream = (n: number): string => text(h2.frame(h2.HEADERS, h2.END_HEADERS | h2.END_STREAM, 2 * n + 1, HEAD))
const open = text(h2.frame(h2.HEADERS, h2.END_HEADERS, 1, HEAD))
const many = (make: (n: number) => string): Shape => {
  const size = make(1).length
  return (length) => Array.from({ length: Math.max(1, Math.floor(length / size)) }, (_, n) => make(n)).join('')
}
const FRAMES: Readonly<Record<string, Shape>> = {
  'streams that are opened': many(stream),
  'streams that are reset': many((n) => stream(n) + text(h2.frame(h2.RST_STREAM, 0, 2 * n + 1, Buffer.alloc(4)))),
  'DATA of one byte': repeat(text(h2.frame(h2.DATA, 0, 1, Buffer.from('a'))), open),
  'DATA that is padding': repeat(text(h2.frame(h2.DATA, h2.PADDED, 1, Buffer.from([9, ...Buffer.alloc(9)]))), open),
  'long DATA': repeat(text(h2.frame(h2.DATA, 0, 1, Buffer.alloc(1000))), open),
  'empty DATA': repeat(text(h2.frame(h2.DATA, 0, 1)), open),
  PINGs: repeat(text(h2.frame(h2.PING, 0, 0, Buffer.alloc(8)))),
  SETTINGS: repeat(text(h2.frame(h2.SETTINGS, 0, 0))),
  'SETTINGS of many values': repeat('\0\x04\0\0\xff\xff', text(h2.frame(h2.SETTINGS, 0, 0).subarray(0, 0))),
  'window updates': repeat(text(h2.frame(h2.WINDOW_UPDATE, 0, 0, Buffer.from([0, 0, 0, 1])))),
  'window updates of a stream': repeat(text(h2.frame(h2.WINDOW_UPDATE, 0, 1, Buffer.from([0, 0, 0, 1]))), open),
  PRIORITY: repeat(text(h2.frame(h2.PRIORITY, 0, 3, Buffer.alloc(5)))),
  'unknown frames': repeat(text(h2.frame(99, 0, 0))),
  'CONTINUATION of one byte': repeat(
    text(h2.frame(h2.CONTINUATION, 0, 1, Buffer.from([0x82]))),
    text(h2.frame(h2.HEADERS, 0, 1, HEAD)),
  ),
  'CONTINUATION of some bytes': repeat(
    text(h2.frame(h2.CONTINUATION, 0, 1, Buffer.alloc(9000, '\x00\x01a\x01b', 'latin1'))),
    text(h2.frame(h2.HEADERS, 0, 1, HEAD)),
  ),
  'frames of closed streams': repeat(
    text(h2.frame(h2.RST_STREAM, 0, 1, Buffer.alloc(4))),
    open + text(h2.frame(h2.RST_STREAM, 0, 1, Buffer.alloc(4))),
  ),
}

export const PARSERS: readonly Parser[] = [
  parserOf({
    name: 'PROXY header',
    // The longest of version 2.
    limit: 65_551,
    prepare: bytes,
    read: (header) => new ProxyHeaderReader().read(header),
    tokens: [
      'PROXY ',
      'TCP4 ',
      'TCP6 ',
      'UNKNOWN ',
      '192.0.2.1 ',
      ':: ',
      '443',
      '\r\n',
      V2,
      '\x21\x11',
      '\0',
      '\x03\0\x04',
    ],
    shapes: {
      'version 1': repeat('1', 'PROXY TCP4 '),
      'version 1 that is unknown': repeat('a', 'PROXY UNKNOWN '),
      'TLVs without content': versionTwo('\x04\0\0'),
      'TLVs of one byte': versionTwo('\x04\0\x01a'),
      checksums: versionTwo('\x03\0\x04abcd'),
      'a TLV in TLVs': versionTwo('\x20\0\x08\x01\0\0\0\0\x21\0\0'),
      'TLVs that are too long': versionTwo('\x04\xff\xff'),
    },
  }),
  parserOf({
    name: 'header block',
    limit: MIB,
    prepare: bytes,
    read: (block) => new HpackDecoder(4096).decode(block, 0, block.length, MIB),
    tokens: Object.values(BLOCKS).flatMap((shape) => ('parts' in shape ? shape.parts.map((part) => part.text) : [])),
    shapes: BLOCKS,
  }),
  parserOf({
    name: 'HTTP/2 frames',
    limit: MIB,
    prepare: bytes,
    read: receive,
    tokens: Object.values(FRAMES).flatMap((shape) => ('parts' in shape ? shape.parts.map((part) => part.text) : [])),
    shapes: FRAMES,
  }),
]
