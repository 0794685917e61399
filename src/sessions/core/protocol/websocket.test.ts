import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { MalformedSession } from './channels.ts'
import { commandChannels } from './session-reader.ts'
import { channelsReader } from './websocket.ts'

const MASK = [0x12, 0x34, 0x56, 0x78]

/** A frame; masked as a client's, or not as a server's. */
function frame(first: number, payload: Buffer, isMasked: boolean, announced: number = payload.length): Buffer {
  const masked = isMasked ? 0x80 : 0
  const long = Buffer.alloc(8)
  long.writeBigUInt64BE(BigInt(announced))
  const length =
    announced < 126
      ? Buffer.from([announced | masked])
      : announced < 0x10000
        ? Buffer.from([126 | masked, announced >> 8, announced & 255])
        : Buffer.concat([Buffer.from([127 | masked]), long])
  const body = isMasked ? payload.map((byte, i) => byte ^ (MASK[i & 3] ?? 0)) : payload
  return Buffer.concat([Buffer.from([first]), length, Buffer.from(isMasked ? MASK : []), body])
}

const client = (payload: Buffer | number[], first = 0x82): Buffer => frame(first, Buffer.from(payload), true)
const server = (payload: Buffer | number[], first = 0x82): Buffer => frame(first, Buffer.from(payload), false)
const text = (channel: number | string, data: string): Buffer =>
  Buffer.concat([typeof channel === 'number' ? Buffer.from([channel]) : Buffer.from(channel), Buffer.from(data)])

/** What is read, one text per channel. @param sent from the client, unless it begins with 's' */
function read(
  subprotocol: string,
  sent: readonly (readonly ['client' | 'server', Buffer])[],
  pieces = Number.POSITIVE_INFINITY,
): Record<string, string> {
  const found: Record<string, string> = {}
  const channels = commandChannels((channel, bytes) => {
    found[channel] = (found[channel] ?? '') + Buffer.from(bytes).toString('latin1')
  })
  const reader = channelsReader(subprotocol, channels)
  assert.ok(reader)
  for (const [side, bytes] of sent) {
    const before = Buffer.from(bytes)
    for (let at = 0; at < bytes.length; at += pieces) {
      const piece = bytes.subarray(at, at + pieces)
      if (side === 'client') reader.fromClient(piece)
      else reader.toClient(piece)
    }
    assert.ok(before.equals(bytes), 'what passes is not changed')
  }
  return found
}

describe('channels', () => {
  for (const [name, subprotocol, sent, wanted] of [
    [
      'version 5',
      'v5.channel.k8s.io',
      [
        ['client', client(text(0, 'ls\n'))],
        ['client', client(text(4, '{"Width":80,"Height":24}'))],
        ['client', client([255, 0])],
        ['server', server(text(1, 'out'))],
        ['server', server(text(2, 'err'))],
        ['server', server(text(3, '{"status":"Success"}'))],
      ],
      {
        stdin: 'ls\n',
        resize: '{"Width":80,"Height":24}',
        stdout: 'out',
        stderr: 'err',
        error: '{"status":"Success"}',
      },
    ],
    ['no subprotocol', '', [['server', server(text(1, 'a'), 0x81)]], { stdout: 'a' }],
    [
      'base64',
      'v4.base64.channel.k8s.io',
      [
        ['client', client(text('0', 'bHM='), 0x81)],
        ['client', client(text('0', 'Cg=='), 0x81)],
        ['server', server(text('1', 'b3V0'), 0x81)],
        ['server', server(text('1', ''), 0x81)],
      ],
      { stdin: 'ls\n', stdout: 'out' },
    ],
    [
      'messages of a server in parts, with a ping between them',
      'v5.channel.k8s.io',
      [
        ['client', client(text(0, 'a'))],
        ['server', server([], 0x02)],
        ['server', server(text(1, 'ping'), 0x89)],
        ['server', server(text(1, 'x'), 0x00)],
        ['server', server(Buffer.from('y'), 0x80)],
      ],
      { stdin: 'a', stdout: 'xy' },
    ],
    [
      'channels that the other side owns, unknown ones, empty messages',
      'v4.channel.k8s.io',
      [
        ['client', client(text(1, 'no'))],
        ['client', client(text(7, 'no'))],
        ['client', client([])],
        ['server', server(text(0, 'no'))],
        ['server', server([1])],
        ['server', server([], 0x88)],
      ],
      {},
    ],
    [
      'long messages',
      'v4.channel.k8s.io',
      [
        ['client', client(text(0, 'x'.repeat(70_000)))],
        ['server', server(text(1, 'y'.repeat(300)))],
      ],
      { stdin: 'x'.repeat(70_000), stdout: 'y'.repeat(300) },
    ],
  ] as const) {
    for (const pieces of [Number.POSITIVE_INFINITY, 1, 3, 1000]) {
      test(`${name}, in pieces of ${pieces}`, () => {
        assert.deepEqual(read(subprotocol, sent, pieces), wanted)
      })
    }
  }

  test('other subprotocols are not read', () => {
    for (const name of ['SPDY/3.1+portforward.k8s.io', 'v6.channel.k8s.io', 'constructor']) {
      assert.equal(channelsReader(name, { fromClient: [], toClient: [] }), undefined)
    }
  })
})

describe('what is malformed', () => {
  const v4 = 'v4.channel.k8s.io'
  const base64 = 'base64.channel.k8s.io'
  for (const [name, subprotocol, sent] of [
    ['reserved bits', v4, ['client', client(text(0, 'a'), 0xc2)]],
    ['an unmasked client', v4, ['client', server(text(0, 'a'))]],
    ['a masked server', v4, ['server', client(text(1, 'a'))]],
    ['an unknown opcode', v4, ['client', client(text(0, 'a'), 0x83)]],
    ['an unknown control frame', v4, ['client', client([], 0x8b)]],
    ['a control frame in parts', v4, ['client', client([], 0x09)]],
    ['a long control frame', v4, ['client', client(Buffer.alloc(126), 0x89)]],
    ['a continuation of nothing', v4, ['client', client(text(0, 'a'), 0x80)]],
    ['a client in parts, which servers do not join', v4, ['client', client(text(0, 'a'), 0x02)]],
    ['the same in version 5', 'v5.channel.k8s.io', ['client', client(text(9, 'a'), 0x02)]],
    ['a length beyond all numbers', v4, ['client', Buffer.from([0x82, 0xff, ...Array<number>(12).fill(255)])]],
    ['no base64', base64, ['client', client(text('0', 'b H='))]],
    ['base64 behind padding', base64, ['client', client(text('0', 'bHM=bHM='))]],
    ['base64 with lines, which Go skips', base64, ['client', client(text('0', 'bH\nM='))]],
    ['half a group', base64, ['client', client(text('0', 'bHM'))]],
  ] as const) {
    test(name, () => {
      for (const pieces of [Number.POSITIVE_INFINITY, 1]) {
        assert.throws(() => read(subprotocol, [sent], pieces), MalformedSession)
      }
    })
  }

  test('a new message within another', () => {
    const sent = [
      ['server', server(text(1, 'a'), 0x02)],
      ['server', server(text(1, 'b'))],
    ] as const
    assert.throws(() => read('v5.channel.k8s.io', sent), MalformedSession)
  })

  test('a frame of a gigabyte that is announced takes no memory, and what comes of it is read', () => {
    const head = frame(0x82, text(1, 'beginning'), false, 1024 ** 3)
    assert.deepEqual(read(v4, [['server', head]]), { stdout: 'beginning' })
  })
})

test('any bytes are read, or malformed, and the same however they are cut', () => {
  const heads = fc.constantFrom(0x82, 0x81, 0x02, 0x00, 0x80, 0x89, 0x88)
  const frames = fc.array(
    fc.oneof(
      fc.tuple(heads, fc.uint8Array({ maxLength: 200 })).map(([first, body]) => frame(first, Buffer.from(body), true)),
      fc.uint8Array({ maxLength: 20 }).map((bytes) => Buffer.from(bytes)),
    ),
    { maxLength: 6 },
  )
  fc.assert(
    fc.property(
      frames,
      fc.constantFrom('', 'v5.channel.k8s.io', 'base64.channel.k8s.io'),
      fc.nat(30),
      (all, name, size) => {
        const bytes = Buffer.concat(all)
        const outcome = (pieces: number): unknown => {
          try {
            return read(name, [['client', bytes]], pieces)
          } catch (error) {
            assert.ok(error instanceof MalformedSession, String(error))
            return error.message
          }
        }
        assert.deepEqual(outcome(size + 1), outcome(Number.POSITIVE_INFINITY))
      },
    ),
  )
})
