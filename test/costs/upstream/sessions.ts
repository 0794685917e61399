// What passes in a session that is recorded: frames of WebSocket and SPDY, and what a terminal is told.

import { deflateSync } from 'node:zlib'
import { userCharge } from '../../../src/kit/core/shares/charge.ts'
import { commandStreams } from '../../../src/sessions/core/protocol/session-reader.ts'
import { spdyReader } from '../../../src/sessions/core/protocol/spdy.ts'
import { terminalFilter } from '../../../src/sessions/core/recording/terminal-filter.ts'
import { headerInflater, spdyDictionary } from '../../../src/sessions/io/inflate-headers.ts'
import { SessionRecorder } from '../../../src/sessions/request/session-recorder.ts'
import { fieldBlock, rstStream, synStream } from '../../harness/frames/spdy-frames.ts'
import { bytes, type Parser, parser, parserOf } from '../parser.ts'
import { MIB, repeat } from '../shapes.ts'

const ABOUT = {
  ...{ cluster: 'a', user: 'b', groups: [], impersonator: '', namespace: 'c', pod: 'd', container: '', kind: 'exec' },
  ...{ command: [], auditId: '', remoteAddress: '', input: true },
}
const RECORDINGS = {
  open: () => ({
    isFull: false,
    isOverfull: false,
    waitingBytes: 0,
    add: () => '',
    flush: () => undefined,
    end: () => undefined,
  }),
}
const CLOCK = { now: () => 0, monotonic: () => 0 }

/** A session whose recording keeps nothing; each reading has its own, since what is malformed ends it. @param kind exec, or portforward */
function recorder(protocol: string, kind = 'exec', upgrade = 'websocket'): SessionRecorder {
  const tap = new SessionRecorder({
    // biome-ignore lint/suspicious/noExplicitAny: what it uses of a recording
    recordings: RECORDINGS as any,
    inflater: headerInflater,
    clock: CLOCK,
    name: '',
    charge: userCharge('a', 'b', 1),
    about: { ...ABOUT, kind, ports: ['80', '81'] },
    isStopping: () => false,
    isRequired: false,
    counted: () => undefined,
  })
  const session = { onReady: () => undefined, onBroken: () => undefined }
  tap.begin([':status', '101', 'upgrade', upgrade, 'sec-websocket-protocol', protocol], session)
  return tap
}

/** Compressed as a client does: both streams of a connection, which are closed again, so many times. */
function connections(count: number): Buffer {
  // Stored, so that no state of a compressor is needed.
  const stored = (type: string, request: number): Buffer => {
    const block = fieldBlock([
      ['port', '80'],
      ['streamtype', type],
      ['requestid', String(request)],
    ])
    const head = Buffer.alloc(5)
    head.writeUInt16LE(block.length, 1)
    head.writeUInt16LE(~block.length & 0xffff, 3)
    return Buffer.concat([head, block])
  }
  const head = deflateSync('', { dictionary: spdyDictionary() }).subarray(0, ZLIB_HEAD_BYTES)
  return Buffer.concat(
    Array.from({ length: count }, (_, at) => {
      const first = stored('error', at)
      return Buffer.concat([
        synStream(4 * at + 1, at === 0 ? Buffer.concat([head, first]) : first),
        synStream(4 * at + 3, stored('data', at)),
        ...(at + 1 < count ? [rstStream(4 * at + 1), rstStream(4 * at + 3)] : []),
      ])
    }),
  )
}

/** With the checksum of the dictionary. */
const ZLIB_HEAD_BYTES = 6
/** A connection whose data is stream 3. */
const FORWARDED = connections(1)
const STDOUT = '\x82\x03\x01ab'
const OPCODES = ['\x82', '\x81', '\x02', '\x00', '\x80', '\x89', '\x7e', '\x7f', '\x01', '\x03', '\xff']

export const PARSERS: readonly Parser[] = [
  parserOf({
    name: 'session over WebSocket, of upstream',
    limit: MIB,
    prepare: bytes,
    read: (chunk) => recorder('v5.channel.k8s.io').toClient(chunk),
    tokens: OPCODES,
    shapes: {
      'small messages': repeat(STDOUT),
      'empty messages': repeat('\x82\x00'),
      'a message in parts': repeat('\x00\x01a', '\x02\x01\x01'),
      'errors without end': repeat('\x82\x03\x03ab'),
      'an error without end': repeat('a', '\x82\x7f\x00\x00\x00\x00\x10\x00\x00\x00\x03'),
      'a long message': repeat('\x00', '\x82\x7f\x00\x00\x00\x00\x10\x00\x00\x00\x01'),
    },
  }),
  parserOf({
    name: 'session over WebSocket, of the client',
    limit: MIB,
    prepare: bytes,
    read: (chunk) => recorder('v5.channel.k8s.io').fromClient(chunk),
    tokens: OPCODES,
    shapes: {
      'small messages': repeat('\x82\x82\x00\x00\x00\x00\x00a'),
      'sizes without end': repeat('{', '\x82\xff\x00\x00\x00\x00\x10\x00\x00\x00\x00\x00\x00\x00\x04'),
      'ends of sizes': repeat('}', '\x82\xff\x00\x00\x00\x00\x10\x00\x00\x00\x00\x00\x00\x00\x04'),
      sizes: repeat('{"Width":1,"Height":1}', '\x82\xff\x00\x00\x00\x00\x10\x00\x00\x00\x00\x00\x00\x00\x04'),
    },
  }),
  parserOf({
    name: 'session over WebSocket, in base64',
    limit: MIB,
    prepare: bytes,
    read: (chunk) => recorder('base64.channel.k8s.io').toClient(chunk),
    tokens: OPCODES,
    shapes: {
      'small messages': repeat('\x81\x051YWI='),
      'a long message': repeat('YWJj', '\x81\x7f\x00\x00\x00\x00\x10\x00\x00\x001'),
    },
  }),
  parserOf({
    name: 'session over SPDY',
    limit: MIB,
    prepare: bytes,
    read: (chunk) =>
      spdyReader(
        commandStreams(() => undefined),
        headerInflater(),
      ).fromClient(chunk),
    tokens: ['\x80\x03\x00\x01', '\x00', '\x00\x00\x00\x0a', '\x80\x03\x00\x06'],
    shapes: {
      pings: repeat('\x80\x03\x00\x06\x00\x00\x00\x04\x00\x00\x00\x01'),
      'fields without end': repeat('x', '\x80\x03\x00\x01\x00\x00\x40\x00'),
      'streams without fields': repeat('\x80\x03\x00\x01\x00\x00\x00\x0a\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00'),
    },
  }),
  parserOf({
    name: 'port-forward over SPDY',
    limit: MIB,
    prepare: (text) => Buffer.concat([FORWARDED, bytes(text)]),
    read: (chunk) => recorder('', 'portforward', 'SPDY/3.1').fromClient(chunk),
    tokens: ['\x80\x03\x00\x01', '\x00', '\x00\x00\x00\x03', '\x80\x03\x00\x03\x00\x00\x00\x08', '\x01'],
    shapes: {
      'small frames': repeat('\x00\x00\x00\x03\x00\x00\x00\x01a'),
      'empty frames': repeat('\x00\x00\x00\x03\x00\x00\x00\x00'),
      'a long frame': repeat('a', '\x00\x00\x00\x03\x00\xff\xff\xff'),
      'ends of streams': repeat('\x80\x03\x00\x03\x00\x00\x00\x08\x00\x00\x00\x03\x00\x00\x00\x05'),
    },
  }),
  parserOf({
    name: 'port-forward in a tunnel over WebSocket',
    limit: MIB,
    prepare: bytes,
    read: (chunk) => recorder('SPDY/3.1+portforward.k8s.io', 'portforward').fromClient(chunk),
    tokens: [...OPCODES, '\x80\x03\x00\x06\x00\x00\x00\x04'],
    shapes: {
      'empty messages': repeat('\x82\x80\x00\x00\x00\x00'),
      'a byte in each message': repeat('\x82\x81\x00\x00\x00\x00\x00'),
      'a message in parts': repeat('\x00\x80\x00\x00\x00\x00', '\x02\x80\x00\x00\x00\x00'),
    },
  }),
  parserOf({
    name: 'port-forward in channels over WebSocket',
    limit: MIB,
    prepare: bytes,
    read: (chunk) => recorder('v4.channel.k8s.io', 'portforward').fromClient(chunk),
    tokens: [...OPCODES, '\x82\x82\x00\x00\x00\x00'],
    shapes: {
      'connections that take turns': repeat('\x82\x82\x00\x00\x00\x00\x00a\x82\x82\x00\x00\x00\x00\x02a'),
    },
  }),
  parserOf({
    name: 'connections of a port-forward, one after the other',
    limit: 16 * 1024,
    // Header fields are compressed: each byte of the input is a connection.
    prepare: (text) => connections(text.length),
    read: (chunk) => recorder('', 'portforward', 'SPDY/3.1').fromClient(chunk),
    tokens: ['a'],
    shapes: { connections: repeat('a') },
  }),
  parser({
    name: 'text for the terminal that plays a recording',
    limit: MIB,
    read: (text) => terminalFilter(false).filter(text),
    tokens: ['\x1b', '[', ']', 'm', ';', '1', '\\', 'P', '\x07', '\u202e', 'é'],
    shapes: {
      colours: repeat('\x1b[1m'),
      'a sequence without end': repeat('1;', '\x1b['),
      'a string without end': repeat('x', '\x1b]52;'),
      strings: repeat('\x1b]0;x\x07'),
      escapes: repeat('\x1b'),
      'characters beyond ASCII': repeat('é'),
    },
  }),
]
