// What passes in a session that is recorded: frames of WebSocket and SPDY, and what a terminal is told.

import { userCharge } from '../../../src/kit/core/shares/charge.ts'
import { spdyReader } from '../../../src/sessions/core/protocol/spdy.ts'
import { terminalFilter } from '../../../src/sessions/core/recording/terminal-filter.ts'
import { inflateHeaders } from '../../../src/sessions/io/inflate-headers.ts'
import { SessionRecorder } from '../../../src/sessions/request/session-recorder.ts'
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

/** A session whose recording keeps nothing. */
function recorder(protocol: string): SessionRecorder {
  const tap = new SessionRecorder({
    // biome-ignore lint/suspicious/noExplicitAny: what it uses of a recording
    recordings: RECORDINGS as any,
    inflate: inflateHeaders,
    clock: CLOCK,
    name: '',
    charge: userCharge('a', 'b', 1),
    about: ABOUT,
    isStopping: () => false,
    isRequired: false,
    counted: () => undefined,
  })
  const session = { onReady: () => undefined, onBroken: () => undefined }
  tap.begin([':status', '101', 'upgrade', 'websocket', 'sec-websocket-protocol', protocol], session)
  return tap
}

const STDOUT = '\x82\x03\x01ab'
const OPCODES = ['\x82', '\x81', '\x02', '\x00', '\x80', '\x89', '\x7e', '\x7f', '\x01', '\x03', '\xff']

export const PARSERS: readonly Parser[] = [
  parserOf({
    name: 'session over WebSocket, of upstream',
    limit: MIB,
    prepare: (text) => ({ tap: recorder('v5.channel.k8s.io'), chunk: bytes(text) }),
    read: ({ tap, chunk }) => tap.toClient(chunk),
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
    prepare: (text) => ({ tap: recorder('v5.channel.k8s.io'), chunk: bytes(text) }),
    read: ({ tap, chunk }) => tap.fromClient(chunk),
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
    prepare: (text) => ({ tap: recorder('base64.channel.k8s.io'), chunk: bytes(text) }),
    read: ({ tap, chunk }) => tap.toClient(chunk),
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
    read: (chunk) => spdyReader(() => undefined, inflateHeaders).fromClient(chunk),
    tokens: ['\x80\x03\x00\x01', '\x00', '\x00\x00\x00\x0a', '\x80\x03\x00\x06'],
    shapes: {
      pings: repeat('\x80\x03\x00\x06\x00\x00\x00\x04\x00\x00\x00\x01'),
      'fields without end': repeat('x', '\x80\x03\x00\x01\x00\x00\x40\x00'),
      'streams without fields': repeat('\x80\x03\x00\x01\x00\x00\x00\x0a\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00'),
    },
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
