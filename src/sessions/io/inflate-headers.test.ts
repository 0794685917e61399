// SPDY sessions, with header fields compressed as a client does.

import assert from 'node:assert/strict'
import { createHash, randomBytes } from 'node:crypto'
import { test } from 'node:test'
import { constants, createDeflate } from 'node:zlib'
import fc from 'fast-check'
import { MalformedSession } from '../core/protocol/channels.ts'
import { spdyReader } from '../core/protocol/spdy.ts'
import { spdyDictionary } from '../core/protocol/spdy-dictionary.ts'
import { inflateHeaders } from './inflate-headers.ts'

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

function u32(value: number): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32BE(value)
  return bytes
}

function fields(pairs: readonly (readonly [string, string])[]): Buffer {
  const texts = pairs.flat().flatMap((text) => [u32(Buffer.byteLength(text)), Buffer.from(text)])
  return Buffer.concat([u32(pairs.length), ...texts])
}

function control(type: number, body: Buffer): Buffer {
  return Buffer.concat([Buffer.from([0x80, 3, 0, type, 0]), u32(body.length).subarray(1), body])
}

const synStream = (id: number, block: Buffer): Buffer =>
  control(1, Buffer.concat([u32(id), u32(0), Buffer.alloc(2), block]))
const data = (id: number, text: string): Buffer =>
  Buffer.concat([u32(id), Buffer.from([0]), u32(Buffer.byteLength(text)).subarray(1), Buffer.from(text)])

const NAMES = ['error', 'stdin', 'stdout', 'stderr', 'resize'] as const
const BLOCKS = await compressed([
  ...NAMES.map((name) => fields([['streamtype', name]])),
  fields([['other', 'x']]),
  fields([['streamtype', 'stdin\0stdout']]),
  fields([
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
  const reader = spdyReader((channel, bytes) => {
    found[channel] = (found[channel] ?? '') + Buffer.from(bytes).toString()
  }, inflateHeaders)
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
    data(3, 'ls\n'),
    control(6, u32(1)),
    data(9, '{"Width":1}'),
    data(5, 'not output'),
  ])
  const got = Buffer.concat([
    control(2, Buffer.concat([u32(1), Buffer.from('whatever')])),
    data(5, 'out'),
    data(7, 'err'),
    data(1, '{}'),
    data(3, 'not input'),
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
  const others = Buffer.concat([OPENED, synStream(11, block(5)), synStream(13, block(6)), data(11, 'x'), data(13, 'y')])
  assert.deepEqual(read(others), { stdin: 'y' })
})

test('what is malformed', async () => {
  const [bomb = Buffer.alloc(0)] = await compressed([fields([['x', 'a'.repeat(100_000)]])])
  const long = Buffer.concat([u32(1), u32(10), Buffer.from('streamtype'), u32(6), Buffer.from('stdin')])
  const large = await compressed(Array.from({ length: 5 }, () => fields([['x', randomBytes(4000).toString('hex')]])))
  const many = await compressed(Array.from({ length: 17 }, () => fields([['streamtype', 'error']])))
  for (const [name, sent] of [
    ['HTTP', Buffer.from('GET / HTTP/1.1\r\n\r\n')],
    ['another version', Buffer.concat([Buffer.from([0x80, 2, 0, 6, 0, 0, 0, 4]), u32(1)])],
    ['an unknown type', Buffer.concat([OPENED, control(20, Buffer.concat([u32(1), block(5)]))])],
    ['data of no stream', data(1, 'x')],
    ['a stream that is opened twice', Buffer.concat([OPENED, synStream(9, block(5))])],
    ['two types', Buffer.concat([OPENED, synStream(11, block(5)), synStream(13, block(6)), synStream(15, block(7))])],
    ['fields that are not compressed', synStream(1, fields([['streamtype', 'stdin']]))],
    ['a frame that is too short', control(1, Buffer.alloc(3))],
    ['a frame that announces 16 MiB of fields', Buffer.from([0x80, 3, 0, 1, 0, 0xff, 0xff, 0xff])],
    ['fields that become large', synStream(1, bomb)],
    ['many streams', Buffer.concat(many.map((one, at) => synStream(2 * at + 1, one)))],
    ['fields that break off', synStream(1, (await compressed([u32(5)]))[0] ?? Buffer.alloc(0))],
    ['a value that breaks off', synStream(1, (await compressed([long]))[0] ?? Buffer.alloc(0))],
    ['many fields in few streams', Buffer.concat(large.map((one, at) => synStream(2 * at + 1, one)))],
  ] as const) {
    assert.throws(() => read(sent), MalformedSession, name)
  }
})

test('what a Go server reads as other frames than these is malformed', async () => {
  // It goes on reading where the last field ended, in the next frame with fields; of frames without fields it reads what it expects, whatever their
  // length says (github.com/moby/spdystream/spdy/read.go).
  const twice = Buffer.concat([fields([['streamtype', 'resize']]), fields([['streamtype', 'stdout']])])
  const [two = Buffer.alloc(0), one = Buffer.alloc(0)] = await compressed([twice, fields([['streamtype', 'stdin']])])
  const hidden = data(3, 'rm -rf /')
  for (const [name, sent] of [
    ['fields behind those of a stream', Buffer.concat([synStream(1, two), synStream(3, one)])],
    ['fields behind those of a reply', control(2, Buffer.concat([u32(1), two]))],
    ['fields behind further ones of a stream', control(8, Buffer.concat([u32(1), two]))],
    ['a long RST_STREAM', control(3, Buffer.concat([u32(1), u32(1), hidden]))],
    ['a long SETTINGS', control(4, Buffer.concat([u32(0), hidden]))],
    ['a short SETTINGS', control(4, u32(1))],
    ['an empty SETTINGS', control(4, Buffer.alloc(0))],
    ['NOOP, which it does not know', control(5, Buffer.alloc(0))],
    ['a long PING', control(6, Buffer.concat([u32(1), hidden]))],
    ['an empty PING', control(6, Buffer.alloc(0))],
    ['a long GOAWAY', control(7, Buffer.concat([u32(1), u32(0), hidden]))],
    ['a short WINDOW_UPDATE', control(9, u32(1))],
  ] as const) {
    for (const pieces of [Number.POSITIVE_INFINITY, 1]) {
      assert.throws(() => read(Buffer.concat([OPENED, sent]), Buffer.alloc(0), pieces), MalformedSession, name)
      assert.throws(() => read(sent, Buffer.alloc(0), pieces), MalformedSession, name)
    }
  }
  const whole = [
    control(3, Buffer.concat([u32(1), u32(1)])),
    control(4, Buffer.concat([u32(1), Buffer.alloc(8)])),
    control(6, u32(1)),
    control(7, Buffer.concat([u32(1), u32(0)])),
    control(9, Buffer.concat([u32(1), u32(1)])),
  ]
  assert.deepEqual(read(Buffer.concat([OPENED, ...whole, data(3, 'ls')])), { stdin: 'ls' })
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
            return read(sent, data(5, 'out'), pieces)
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
