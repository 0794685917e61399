// SPDY sessions, with header fields compressed as a client does.

import assert from 'node:assert/strict'
import { createHash, randomBytes } from 'node:crypto'
import { test } from 'node:test'
import { constants, createDeflate, deflateSync } from 'node:zlib'
import fc from 'fast-check'
import { controlFrame, dataFrame, fieldBlock, synStream, u32 } from '../../../test/harness/frames/spdy-frames.ts'
import { MalformedSession } from '../core/protocol/channels.ts'
import { commandStreams } from '../core/protocol/session-reader.ts'
import { MAX_HEADER_BLOCK, spdyReader } from '../core/protocol/spdy.ts'
import { headerInflater, spdyDictionary } from './inflate-headers.ts'

/** Compresses blocks one after the other, in one zlib stream. */
async function compressed(blocks: readonly Buffer[]): Promise<readonly Buffer[]> {
  const deflate = createDeflate({ dictionary: spdyDictionary() })
  const out: Buffer[] = []
  let pieces: Buffer[] = []
  deflate.on('data', (piece: Buffer) => pieces.push(piece))
  for (const block of blocks) {
    await new Promise<void>((resolve, reject) => deflate.write(block, (error) => (error ? reject(error) : resolve())))
    await new Promise<void>((resolve) => deflate.flush(constants.Z_SYNC_FLUSH, () => resolve()))
    await new Promise<void>((resolve) => setImmediate(resolve))
    out.push(Buffer.concat(pieces))
    pieces = []
  }
  deflate.destroy()
  return out
}

const NAMES = ['error', 'stdin', 'stdout', 'stderr', 'resize'] as const
const BLOCKS = await compressed([
  ...NAMES.map((name) => fieldBlock([['streamtype', name]])),
  fieldBlock([['other', 'x']]),
  fieldBlock([['streamtype', 'stdin\0stdout']]),
  fieldBlock([
    ['streamtype', 'stdin'],
    ['streamtype', 'stdout'],
  ]),
])
const block = (at: number): Buffer => BLOCKS[at] ?? Buffer.alloc(0)
/** Streams 1, 3, 5, 7 and 9. */
const OPENED = Buffer.concat(NAMES.map((_, at) => synStream(2 * at + 1, block(at))))

function read(
  fromClient: Buffer,
  toClient: Buffer = Buffer.alloc(0),
  pieces = Number.POSITIVE_INFINITY,
): Record<string, string> {
  const found: Record<string, string> = {}
  const use = commandStreams((channel, bytes) => {
    found[channel] = (found[channel] ?? '') + Buffer.from(bytes).toString()
  })
  const reader = spdyReader(use, headerInflater())
  for (let at = 0; at < fromClient.length; at += pieces) reader.fromClient(fromClient.subarray(at, at + pieces))
  for (let at = 0; at < toClient.length; at += pieces) reader.toClient(toClient.subarray(at, at + pieces))
  return found
}

test('the dictionary is that of the protocol', () => {
  const digest = createHash('sha256').update(spdyDictionary()).digest('hex')
  assert.equal(digest, '51d27341373f923f3cd88e1eb7162aeaa3723d7585ff2399201dc06498407f02')
})

test('streams by the names that the client gives them', () => {
  const sent = Buffer.concat([
    OPENED,
    dataFrame(3, 'ls\n'),
    controlFrame(6, u32(1)),
    dataFrame(9, '{"Width":1}'),
    dataFrame(5, 'not output'),
  ])
  const got = Buffer.concat([
    controlFrame(2, Buffer.concat([u32(1), Buffer.from('whatever')])),
    dataFrame(5, 'out'),
    dataFrame(7, 'err'),
    dataFrame(1, '{}'),
    dataFrame(3, 'not input'),
  ])
  for (const pieces of [Number.POSITIVE_INFINITY, 1, 7]) {
    assert.deepEqual(read(sent, got, pieces), {
      stdin: 'ls\n',
      resize: '{"Width":1}',
      stdout: 'out',
      stderr: 'err',
      error: '{}',
    })
  }
})

test('streams of other names are passed over; of several values the first counts, as in Go', () => {
  const others = Buffer.concat([
    OPENED,
    synStream(11, block(5)),
    synStream(13, block(6)),
    dataFrame(11, 'x'),
    dataFrame(13, 'y'),
  ])
  assert.deepEqual(read(others), { stdin: 'y' })
})

test('what is malformed', async () => {
  const [bomb = Buffer.alloc(0)] = await compressed([fieldBlock([['x', 'a'.repeat(100_000)]])])
  const long = Buffer.concat([u32(1), u32(10), Buffer.from('streamtype'), u32(6), Buffer.from('stdin')])
  const [large = Buffer.alloc(0)] = await compressed([fieldBlock([['x', randomBytes(20_000).toString('hex')]])])
  const many = await compressed(Array.from({ length: 17 }, () => fieldBlock([['streamtype', 'error']])))
  for (const [name, sent] of [
    ['HTTP', Buffer.from('GET / HTTP/1.1\r\n\r\n')],
    ['another version', Buffer.concat([Buffer.from([0x80, 2, 0, 6, 0, 0, 0, 4]), u32(1)])],
    ['an unknown type', Buffer.concat([OPENED, controlFrame(20, Buffer.concat([u32(1), block(5)]))])],
    ['data of no stream', dataFrame(1, 'x')],
    ['a stream that is opened twice', Buffer.concat([OPENED, synStream(9, block(5))])],
    ['two types', Buffer.concat([OPENED, synStream(11, block(5)), synStream(13, block(6)), synStream(15, block(7))])],
    ['fields that are not compressed', synStream(1, fieldBlock([['streamtype', 'stdin']]))],
    ['a frame that is too short', controlFrame(1, Buffer.alloc(3))],
    ['a frame that announces 16 MiB of fields', Buffer.from([0x80, 3, 0, 1, 0, 0xff, 0xff, 0xff])],
    ['fields that become large', synStream(1, bomb)],
    ['many streams', Buffer.concat(many.map((one, at) => synStream(2 * at + 1, one)))],
    ['fields that break off', synStream(1, (await compressed([u32(5)]))[0] ?? Buffer.alloc(0))],
    ['a value that breaks off', synStream(1, (await compressed([long]))[0] ?? Buffer.alloc(0))],
    ['many fields that do not become fewer', synStream(1, large)],
  ] as const) {
    assert.throws(() => read(sent), MalformedSession, name)
  }
})

test('what a Go server reads as other frames than these is malformed', async () => {
  // It goes on reading where the last field ended, in the next frame with fields; of frames without fields it reads what it expects, whatever their
  // length says (github.com/moby/spdystream/spdy/read.go).
  const twice = Buffer.concat([fieldBlock([['streamtype', 'resize']]), fieldBlock([['streamtype', 'stdout']])])
  const [two = Buffer.alloc(0), one = Buffer.alloc(0)] = await compressed([
    twice,
    fieldBlock([['streamtype', 'stdin']]),
  ])
  const hidden = dataFrame(3, 'rm -rf /')
  for (const [name, sent] of [
    ['fields behind those of a stream', Buffer.concat([synStream(1, two), synStream(3, one)])],
    ['fields behind those of a reply', controlFrame(2, Buffer.concat([u32(1), two]))],
    ['fields behind further ones of a stream', controlFrame(8, Buffer.concat([u32(1), two]))],
    ['a long RST_STREAM', controlFrame(3, Buffer.concat([u32(1), u32(1), hidden]))],
    ['a long SETTINGS', controlFrame(4, Buffer.concat([u32(0), hidden]))],
    ['a short SETTINGS', controlFrame(4, u32(1))],
    ['an empty SETTINGS', controlFrame(4, Buffer.alloc(0))],
    ['NOOP, which it does not know', controlFrame(5, Buffer.alloc(0))],
    ['a long PING', controlFrame(6, Buffer.concat([u32(1), hidden]))],
    ['an empty PING', controlFrame(6, Buffer.alloc(0))],
    ['a long GOAWAY', controlFrame(7, Buffer.concat([u32(1), u32(0), hidden]))],
    ['a short WINDOW_UPDATE', controlFrame(9, u32(1))],
  ] as const) {
    for (const pieces of [Number.POSITIVE_INFINITY, 1]) {
      assert.throws(() => read(Buffer.concat([OPENED, sent]), Buffer.alloc(0), pieces), MalformedSession, name)
      assert.throws(() => read(sent, Buffer.alloc(0), pieces), MalformedSession, name)
    }
  }
  const whole = [
    controlFrame(3, Buffer.concat([u32(1), u32(1)])),
    controlFrame(4, Buffer.concat([u32(1), Buffer.alloc(8)])),
    controlFrame(6, u32(1)),
    controlFrame(7, Buffer.concat([u32(1), u32(0)])),
    controlFrame(9, Buffer.concat([u32(1), u32(1)])),
  ]
  assert.deepEqual(read(Buffer.concat([OPENED, ...whole, dataFrame(3, 'ls')])), { stdin: 'ls' })
})

test('a data frame of 16 MiB that is announced takes no memory', () => {
  const head = Buffer.from([0, 0, 0, 5, 0, 0xff, 0xff, 0xff])
  assert.deepEqual(read(OPENED, Buffer.concat([head, Buffer.from('begin')])), { stdout: 'begin' })
})

test('any bytes are read, or malformed, and the same however they are cut', () => {
  const mutation = fc.tuple(fc.nat(OPENED.length - 1), fc.nat(255))
  fc.assert(
    fc.property(
      fc.array(mutation, { maxLength: 3 }),
      fc.uint8Array({ maxLength: 40 }),
      fc.nat(20),
      (changes, tail, size) => {
        const sent = Buffer.concat([OPENED, tail])
        for (const [at, byte] of changes) sent[at] = byte
        const outcome = (pieces: number): unknown => {
          try {
            return read(sent, dataFrame(5, 'out'), pieces)
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

test('a session may open streams for as long as it goes on: header fields are unpacked piece by piece', async () => {
  const blocks = await compressed(
    Array.from({ length: 3000 }, (_, at) => fieldBlock([['requestid', `${at} ${at * at}`]])),
  )
  assert.ok(Buffer.concat(blocks).length > MAX_HEADER_BLOCK)
  const inflate = headerInflater()
  for (const [at, one] of blocks.entries()) {
    assert.ok(inflate(one).equals(fieldBlock([['requestid', `${at} ${at * at}`]])), `block ${at}`)
  }
})

test('header fields are unpacked to a few times what clients send, so that a frame of a hundred bytes takes no longer than others', async () => {
  const fields = (length: number): Buffer => fieldBlock([['x', 'a'.repeat(length)]])
  const blocks = await compressed([fields(3_000), fields(5_000)])
  const inflate = headerInflater()
  assert.ok(inflate(blocks[0] ?? Buffer.alloc(0)).equals(fields(3_000)))
  assert.throws(() => inflate(blocks[1] ?? Buffer.alloc(0)), MalformedSession)
})

test('a stream of header fields that ends is malformed: what follows would not be unpacked', () => {
  const whole = deflateSync(fieldBlock([['streamtype', 'stdin']]), { dictionary: spdyDictionary() })
  assert.throws(() => headerInflater()(whole), MalformedSession)
})

test('sessions do not see the header fields of others', async () => {
  const [first = Buffer.alloc(0), second = Buffer.alloc(0)] = BLOCKS
  const one = headerInflater()
  one(first)
  assert.throws(() => headerInflater()(second), MalformedSession)
  assert.ok(one(second).includes('stdin'))
})
