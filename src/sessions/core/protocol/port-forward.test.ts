import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import {
  controlFrame,
  dataFrame,
  fieldBlock,
  rstStream,
  synStream,
  u32,
} from '../../../../test/harness/frames/spdy-frames.ts'
import { type ForwardConnection, type ForwardSink, MalformedSession, type SessionReader } from './channels.ts'
import { forwardChannels, forwardStreams, MAX_FORWARD_STREAMS, MAX_REQUEST_ID } from './port-forward.ts'
import { spdyReader } from './spdy.ts'
import { channelsReader, tunnelReader } from './websocket.ts'

const FIN = 1

type Told = readonly [what: string, connection: string, text?: string]

/** Notes what it is told; what follows of the same kind is one. */
function notes(): { readonly told: Told[]; readonly sink: ForwardSink } {
  const told: Told[] = []
  const note = (what: string, { number, port }: ForwardConnection, bytes?: Uint8Array): void => {
    const name = `${number}:${port}`
    const text = bytes && Buffer.from(bytes).toString('latin1')
    const last = told.at(-1)
    if (text === undefined) told.push([what, name])
    else if (last?.[0] === what && last[1] === name) told[told.length - 1] = [what, name, `${last[2]}${text}`]
    else told.push([what, name, text])
  }
  const sink: ForwardSink = {
    begin: (connection) => note('begin', connection),
    fromClient: (connection, bytes) => note('>', connection, bytes),
    toClient: (connection, bytes) => note('<', connection, bytes),
    error: (connection, bytes) => note('error', connection, bytes),
    end: (connection) => note('end', connection),
  }
  return { told, sink }
}

type Sent = readonly (readonly ['client' | 'server', Buffer])[]

function send(reader: SessionReader, sent: Sent, pieces = Number.POSITIVE_INFINITY): void {
  for (const [side, bytes] of sent) {
    for (let at = 0; at < bytes.length; at += pieces) {
      const piece = bytes.subarray(at, at + pieces)
      if (side === 'client') reader.fromClient(piece)
      else reader.toClient(piece)
    }
  }
}

/** Header fields are not compressed here. */
const overSpdy = (sink: ForwardSink): SessionReader => spdyReader(forwardStreams(sink), (block) => Buffer.from(block))

function read(sent: Sent, pieces?: number): readonly Told[] {
  const { told, sink } = notes()
  send(overSpdy(sink), sent, pieces)
  return told
}

const fields = (streamtype: string, requestid: string, port = '80'): Buffer =>
  fieldBlock([
    ['port', port],
    ['streamtype', streamtype],
    ...(requestid === '' ? [] : [['requestid', requestid] as const]),
  ])
/** Both streams of a connection: `id` for errors, the next one for data. As client-go opens them. */
const opened = (id: number, requestid: string, port = '80'): Buffer =>
  Buffer.concat([
    synStream(id, fields('error', requestid, port)),
    dataFrame(id, '', FIN),
    synStream(id + 2, fields('data', requestid, port)),
  ])

describe('over SPDY', () => {
  test('several connections at once, in both directions', () => {
    const sent: Sent = [
      ['client', Buffer.concat([opened(1, '0'), opened(5, '1', '8080')])],
      ['client', Buffer.concat([dataFrame(3, 'first'), dataFrame(7, 'second'), dataFrame(3, ' again')])],
      ['server', Buffer.concat([controlFrame(2, u32(1)), dataFrame(7, 'two'), dataFrame(3, 'one', FIN)])],
      ['client', dataFrame(3, '!', FIN)],
      ['client', rstStream(7)],
      ['server', dataFrame(7, 'on its way')],
    ]
    for (const pieces of [Number.POSITIVE_INFINITY, 1, 7]) {
      assert.deepEqual(read(sent, pieces), [
        ['begin', '1:80'],
        ['begin', '2:8080'],
        ['>', '1:80', 'first'],
        ['>', '2:8080', 'second'],
        ['>', '1:80', ' again'],
        ['<', '2:8080', 'two'],
        ['<', '1:80', 'one'],
        ['>', '1:80', '!'],
        ['end', '1:80'],
        ['end', '2:8080'],
      ])
    }
  })

  test('streams are related by request ID in any order; old clients send none', () => {
    const data = synStream(1, fields('data', 'x'))
    const both = Buffer.concat([data, synStream(3, fields('error', 'x'))])
    assert.deepEqual(read([['client', both]]), [['begin', '1:80']])
    assert.deepEqual(read([['client', Buffer.concat([opened(1, ''), opened(5, '', '81')])]]), [
      ['begin', '1:80'],
      ['begin', '2:81'],
    ])
    assert.deepEqual(read([['client', Buffer.concat([data, synStream(3, fields('error', 'y'))])]]), [])
  })

  test('the port is that of the stream for data, as a kubelet takes it', () => {
    const both = [synStream(1, fields('error', 'x', '22')), synStream(3, fields('data', 'x', '0080'))]
    assert.deepEqual(read([['client', Buffer.concat(both)]]), [['begin', '1:80']])
  })

  test('what a kubelet says of a connection that failed', () => {
    const sent: Sent = [
      ['client', opened(1, '0')],
      ['server', Buffer.concat([dataFrame(1, 'refused'), rstStream(3), rstStream(1)])],
    ]
    assert.deepEqual(read(sent), [
      ['begin', '1:80'],
      ['error', '1:80', 'refused'],
      ['end', '1:80'],
    ])
  })

  test('what comes behind the end of a stream is not recorded', () => {
    const sent: Sent = [
      ['client', Buffer.concat([opened(1, '0'), dataFrame(3, 'a', FIN), dataFrame(3, 'b')])],
      ['client', Buffer.concat([rstStream(3), dataFrame(3, 'c')])],
    ]
    assert.deepEqual(read(sent), [
      ['begin', '1:80'],
      ['>', '1:80', 'a'],
      ['end', '1:80'],
    ])
  })

  test('thousands of connections, one after the other, and as many at a time as are read', () => {
    const { told, sink } = notes()
    const reader = overSpdy(sink)
    const connections = 20 * MAX_FORWARD_STREAMS
    for (let at = 0; at < connections; at++) {
      const id = 4 * at + 1
      reader.fromClient(opened(id, String(at)))
      reader.toClient(Buffer.concat([dataFrame(id + 2, 'x', FIN), dataFrame(id, '', FIN)]))
      reader.fromClient(rstStream(id + 2))
    }
    assert.equal(told.filter(([what]) => what === 'end').length, connections)
    const id = 4 * connections + 1
    const most = MAX_FORWARD_STREAMS / 2
    for (let at = 0; at < most; at++) reader.fromClient(opened(id + 4 * at, String(at)))
    assert.throws(() => reader.fromClient(opened(id + 4 * most, 'x')), /too many streams/)
  })

  for (const [name, sent] of [
    ['a number that is used again', Buffer.concat([opened(1, '0'), rstStream(3), synStream(3, fields('data', '1'))])],
    ['a number that is lower', Buffer.concat([opened(5, '0'), synStream(1, fields('error', '1'))])],
    ['a number between two of a client', Buffer.concat([opened(1, '0'), synStream(4, fields('error', '1'))])],
    ['data of no stream', dataFrame(9, 'x')],
    ['two streams of a kind', Buffer.concat([synStream(1, fields('data', '0')), synStream(3, fields('data', '0'))])],
    ['a request ID of a connection that goes on', Buffer.concat([opened(1, '0'), opened(5, '0')])],
    ['data of half a connection', Buffer.concat([synStream(1, fields('data', '0')), dataFrame(1, 'x')])],
    ['a long request ID', synStream(1, fields('data', 'x'.repeat(MAX_REQUEST_ID + 1)))],
    ...['0', '65536', '', '-1', '8o', '+80', '0x50', '0'.repeat(30)].map(
      (port) => [`a stream to port "${port}"`, synStream(1, fields('data', '0', port))] as const,
    ),
    ['a stream of another kind', synStream(1, fields('stdin', '0'))],
    ['two ports', synStream(1, fieldBlock([...['80', '81'].map((port) => ['port', port] as const)]))],
    ['a stream behind GOAWAY', Buffer.concat([controlFrame(7, Buffer.alloc(8)), opened(1, '0')])],
    ['another protocol', Buffer.from('GET / HTTP/1.1\r\n\r\n')],
  ] as const) {
    test(`malformed: ${name}`, () => {
      for (const pieces of [Number.POSITIVE_INFINITY, 1]) {
        assert.throws(() => read([['client', sent]], pieces), MalformedSession)
      }
    })
  }

  test('any bytes are read, or malformed, and the same however they are cut', () => {
    const base = Buffer.concat([
      opened(1, '0'),
      opened(5, '1'),
      dataFrame(3, 'abc'),
      dataFrame(7, 'd', FIN),
      rstStream(3),
    ])
    const changes = fc.array(fc.tuple(fc.nat(base.length - 1), fc.nat(255)), { maxLength: 3 })
    fc.assert(
      fc.property(changes, fc.uint8Array({ maxLength: 40 }), fc.nat(20), (all, tail, size) => {
        const sent = Buffer.concat([base, tail])
        for (const [at, byte] of all) sent[at] = byte
        const outcome = (pieces: number): unknown => {
          try {
            return read([['client', sent]], pieces)
          } catch (error) {
            assert.ok(error instanceof MalformedSession, String(error))
            return error.message
          }
        }
        assert.deepEqual(outcome(size + 1), outcome(Number.POSITIVE_INFINITY))
      }),
    )
  })
})

/** A frame of WebSocket, that of a client with a mask of zeros. */
function frame(first: number, payload: Buffer, isClient: boolean): Buffer {
  const { length } = payload
  const masked = isClient ? 0x80 : 0
  const size = length < 126 ? [length | masked] : [126 | masked, length >> 8, length & 255]
  return Buffer.concat([Buffer.from([first, ...size, ...(isClient ? [0, 0, 0, 0] : [])]), payload])
}

describe('in a tunnel over WebSocket', () => {
  const through = (sent: Sent, pieces?: number): readonly Told[] => {
    const { told, sink } = notes()
    send(tunnelReader(overSpdy(sink)), sent, pieces)
    return told
  }
  const inside = Buffer.concat([opened(1, '0'), dataFrame(3, 'abc')])

  test('messages may be cut anywhere, and be in parts: kubectl sends long ones so', () => {
    const [first, second, third] = [inside.subarray(0, 5), inside.subarray(5, 60), inside.subarray(60)]
    const sent: Sent = [
      ['client', Buffer.concat([frame(0x82, first, true), frame(0x02, second, true), frame(0x89, first, true)])],
      ['client', Buffer.concat([frame(0x80, third, true), frame(0x82, Buffer.alloc(0), true)])],
      ['server', frame(0x82, dataFrame(3, 'def'), false)],
    ]
    for (const pieces of [Number.POSITIVE_INFINITY, 1, 5]) {
      assert.deepEqual(through(sent, pieces), [
        ['begin', '1:80'],
        ['>', '1:80', 'abc'],
        ['<', '1:80', 'def'],
      ])
    }
  })

  test('what comes behind a close frame is not read by servers, and not recorded', () => {
    const late = frame(0x82, dataFrame(3, 'late'), true)
    const sent = Buffer.concat([frame(0x82, inside, true), frame(0x88, Buffer.alloc(0), true), late])
    assert.deepEqual(through([['client', sent]]).at(-1), ['>', '1:80', 'abc'])
  })

  test('messages of text are malformed: they end the connection', () => {
    assert.throws(() => through([['client', frame(0x81, inside, true)]]), MalformedSession)
  })
})

describe('in channels over WebSocket', () => {
  const through = (subprotocol: string, ports: readonly string[], sent: Sent, pieces?: number): readonly Told[] => {
    const { told, sink } = notes()
    const channels = forwardChannels(ports, sink)
    assert.ok(channels)
    const reader = channelsReader(subprotocol, channels)
    assert.ok(reader)
    send(reader, sent, pieces)
    return told
  }
  const message = (isClient: boolean, ...bytes: readonly number[]): Buffer => frame(0x82, Buffer.from(bytes), isClient)

  test('two channels for each port, which begin with it', () => {
    const sent: Sent = [
      ['client', message(true, 2, 0x61)],
      ['server', Buffer.concat([message(false, 0, 80, 0), message(false, 1, 80, 0)])],
      [
        'server',
        Buffer.concat([message(false, 2, 0x90, 0x1f, 0x62), message(false, 3, 0x90), message(false, 3, 0x1f, 0x63)]),
      ],
      ['client', Buffer.concat([message(true, 0, 0x64), message(true, 1, 0x65), message(true, 9, 0x66)])],
    ]
    for (const pieces of [Number.POSITIVE_INFINITY, 1]) {
      assert.deepEqual(through('v4.channel.k8s.io', ['80,8080'], sent, pieces), [
        ['begin', '2:8080'],
        ['>', '2:8080', 'a'],
        ['<', '2:8080', 'b'],
        ['error', '2:8080', 'c'],
        ['begin', '1:80'],
        ['>', '1:80', 'd'],
      ])
    }
  })

  test('in base64, channels that a Go server writes as two bytes, or that have two numbers, are not read: it would be as others', () => {
    const ports = (count: number): readonly string[] => {
      const some = '9'.repeat(count).match(/9{1,20}/g) ?? []
      return some.map((text) => [...text].join(','))
    }
    const readers = (subprotocol: string, count: number): boolean => {
      const channels = forwardChannels(ports(count), notes().sink)
      assert.ok(channels)
      return channelsReader(subprotocol, channels) !== undefined
    }
    for (const subprotocol of ['base64.channel.k8s.io', 'v4.base64.channel.k8s.io']) {
      assert.ok(readers(subprotocol, 40))
      assert.ok(!readers(subprotocol, 41))
      assert.ok(!readers(subprotocol, 127))
    }
    assert.ok(readers('v4.channel.k8s.io', 127))
    const last = frame(0x81, Buffer.from('~YWJj'), true)
    assert.deepEqual(through('base64.channel.k8s.io', ports(40), [['client', last]]), [
      ['begin', '40:9'],
      ['>', '40:9', 'abc'],
    ])
  })

  test('in base64', () => {
    const sent: Sent = [
      ['client', frame(0x81, Buffer.from('0YQ=='), true)],
      ['server', frame(0x81, Buffer.from('0UABi'), false)],
    ]
    assert.deepEqual(through('v4.base64.channel.k8s.io', ['80'], sent), [
      ['begin', '1:80'],
      ['>', '1:80', 'a'],
      ['<', '1:80', 'b'],
    ])
  })

  test('another port than was asked for is malformed; ports that are none are not read', () => {
    assert.throws(() => through('v4.channel.k8s.io', ['80'], [['server', message(false, 0, 81, 0)]]), MalformedSession)
    const { sink } = notes()
    const many = Array.from({ length: 64 }, () => '80')
    for (const ports of [[], ['0'], ['80,'], ['x'], many, [many.join().slice(0, 65)], [many.join().slice(0, 64)]]) {
      assert.equal(forwardChannels(ports, sink), undefined)
    }
  })
})

test('an end that a Go server overlooks is malformed: what follows would be served, and not be seen', () => {
  // It has replied to the stream itself (github.com/moby/spdystream: handleReplyFrame, handleHeaderFrame).
  const block = fieldBlock([])
  for (const type of [2, 8]) {
    const end = controlFrame(type, Buffer.concat([u32(3), block]), FIN)
    const sent: Sent = [
      ['client', opened(1, '0')],
      ['server', Buffer.concat([controlFrame(2, Buffer.concat([u32(3), block])), dataFrame(3, 'ready')])],
      ['client', Buffer.concat([end, dataFrame(3, 'unseen')])],
    ]
    assert.throws(() => read(sent), MalformedSession, `type ${type}`)
    assert.throws(() => read(sent, 1), MalformedSession, `type ${type}`)
  }
  const reply = controlFrame(2, Buffer.concat([u32(3), block]))
  assert.throws(() => read([['client', Buffer.concat([opened(1, '0'), reply])]]), MalformedSession)
})
