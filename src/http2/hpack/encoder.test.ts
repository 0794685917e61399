import assert from 'node:assert/strict'
import { once } from 'node:events'
import http2 from 'node:http2'
import net, { type AddressInfo } from 'node:net'
import { test } from 'node:test'
import fc from 'fast-check'
import { PlainDecoder } from '../../../test/harness/frames/hpack-oracle.ts'
import { DECODED, HpackDecoder } from './decoder.ts'
import { encodeBound, encodeShared, HpackEncoder } from './encoder.ts'
import { KNOWN_NAMES } from './static.ts'

const ROOMY = 1 << 24

function encode(encoder: HpackEncoder, list: readonly string[]): Buffer {
  const bound = encodeBound(list)
  const out = Buffer.alloc(bound + 8, 0xee)
  const end = encoder.encode(list, out, 3)
  assert.ok(end - 3 <= bound, 'encodeBound')
  assert.ok(out.subarray(end).every((octet) => octet === 0xee) && out[2] === 0xee, 'nothing is written elsewhere')
  return out.subarray(3, end)
}

/** Encodes the lists one by one, checks the round trip, and returns the length of each block. */
function lengths(lists: readonly (readonly string[])[], encoder: HpackEncoder = new HpackEncoder()): number[] {
  const decoder = new HpackDecoder(4096)
  return lists.map((list) => {
    const block = encode(encoder, list)
    assert.equal(decoder.decode(block, 0, block.length, ROOMY), DECODED)
    assert.deepEqual(decoder.fields, list)
    return block.length
  })
}

test('fields of the static table are one octet', () => {
  const list = [':method', 'GET', ':scheme', 'https', ':path', '/', 'accept-encoding', 'gzip, deflate']
  assert.deepEqual(encode(new HpackEncoder(), list), Buffer.from([0x82, 0x87, 0x84, 0x90]))
  for (const status of ['200', '204', '206', '304', '400', '404', '500']) {
    assert.equal(encode(new HpackEncoder(), [':status', status]).length, 1)
  }
  // An empty value in the static table means a name alone.
  assert.deepEqual(encode(new HpackEncoder(), ['server', '']), Buffer.from([0x40 | 54, 0]))
})

test('fields that repeat are one octet from the second time on', () => {
  const list = [':authority', 'a.example.com', 'user-agent', 'kubelet/v1.31', 'accept', 'application/json']
  const [first = 0, second, third] = lengths([list, list, list])
  assert.ok(first > 40)
  assert.deepEqual([second, third], [3, 3])
})

test('several values of one name stay in the table side by side', () => {
  const agents = Array.from({ length: 6 }, (_, i) => ['user-agent', `controller-${i}`])
  assert.deepEqual(lengths([...agents, ...agents, ...agents]).slice(6), new Array(12).fill(1))
})

test('a path enters the table when it is sent twice with no other new one in between', () => {
  const [a, b] = [
    [':path', '/api/v1/pods'],
    [':path', '/api/v1/nodes'],
  ] as const
  assert.deepEqual(lengths([a, a, a, b, a, b, b, b, a]), [14, 14, 1, 15, 1, 15, 1, 1, 1])
})

test('what differs in each message stays out of the table', () => {
  for (const name of [
    'audit-id',
    'content-length',
    'etag',
    'traceparent',
    'x-request-id',
    'location',
    'last-modified',
  ]) {
    const [first, second, third] = lengths([
      [name, '12345678'],
      [name, '12345678'],
      [name, '12345678'],
    ])
    assert.ok((first ?? 0) >= 10)
    assert.deepEqual([second, third], [first, first], name)
  }
})

test('identities and credentials are never-indexed literals (RFC 7541 section 6.2.3)', () => {
  const names = ['authorization', 'cookie', 'set-cookie', 'proxy-authorization', 'impersonate-user']
  for (const name of [...names, 'impersonate-extra-scopes', 'impersonate-group', 'x-remote-extra-a']) {
    const encoder = new HpackEncoder()
    for (let i = 0; i < 3; i++) assert.equal((encode(encoder, [name, 'secret'])[0] ?? 0) & 0xf0, 0x10, name)
    assert.equal((encodeShared([name, 'secret']).octets[0] ?? 0) & 0xf0, 0x10, name)
  }
})

test('a long value never enters the table', () => {
  const long = ['user-agent', 'x'.repeat(1025)]
  assert.deepEqual(new Set(lengths([long, long, long, long])), new Set([1025 + 5]))
})

test('names without end do not push known fields out, nor fill memory', () => {
  const encoder = new HpackEncoder()
  const decoder = new HpackDecoder(4096)
  const agent = ['user-agent', 'kubelet/v1.31']
  for (let i = 0; i < 20_000; i++) {
    const block = encode(encoder, [...agent, `x-${i}`, 'value'])
    assert.equal(decoder.decode(block, 0, block.length, ROOMY), DECODED)
    if (i > 0) assert.equal(block[0], 0x80 | 62)
  }
})

test('the newer of two entries for a name is still found when the older is evicted', () => {
  const fields = [
    ['x-a', 'old'],
    ['x-a', 'new'],
  ].flatMap((field) => [field, field, field])
  // Entries of 32 + 10 + 900: the fourth evicts the first one above, but not the second.
  const fillers = ['a', 'b', 'c', 'd'].map((char) => ['user-agent', char.repeat(char === 'd' ? 1010 : 960)])
  assert.deepEqual(lengths([...fields, ...fillers, ['x-a', 'new'], ['x-a', 'old']]).slice(-2), [1, 6])
})

test('encodeBound is enough for many long fields', () => {
  const list = Array.from({ length: 2000 }, (_, i) => [`${'n'.repeat(130)}${i}`, 'v'.repeat(130)]).flat()
  assert.deepEqual(lengths([list]).length, 1)
})

test('shared fields mean the same on every connection, at any time', () => {
  const list = ['impersonate-user', 'jane', 'impersonate-group', 'a', 'x-other', 'b'.repeat(2000), 'accept', '*/*']
  const { octets: shared, listBytes } = encodeShared(list)
  const [fresh, used] = [new HpackDecoder(0), new HpackDecoder(4096)]
  const other = encode(new HpackEncoder(), ['accept', 'application/json', 'user-agent', 'a'])
  assert.equal(used.decode(other, 0, other.length, ROOMY), DECODED)
  for (const decoder of [fresh, used, fresh]) {
    assert.equal(decoder.decode(Buffer.from(shared), 0, shared.length, ROOMY), DECODED)
    assert.deepEqual(decoder.fields, list)
  }
  assert.equal(shared.buffer.byteLength, shared.length, 'no more memory than needed')
  encodeShared(['impersonate-user', 'x'.repeat(4000)])
  assert.equal(fresh.decode(Buffer.from(shared), 0, shared.length, ROOMY), DECODED)
  assert.deepEqual(fresh.fields, list, 'nor memory that others write to')
  assert.equal(listBytes, list.join('').length + 4 * 32)
})

test('size updates go in front of the next block: the smallest size, then the last (RFC 7541 section 4.2)', () => {
  const updates = (...sizes: number[]): string => {
    const encoder = new HpackEncoder()
    encode(encoder, ['accept', '*/*'])
    for (const size of sizes) encoder.setMaxTableBytes(size)
    const block = encode(encoder, [':method', 'GET'])
    assert.equal(encode(encoder, [':method', 'GET']).length, 1, 'only once')
    assert.equal(block.at(-1), 0x82)
    return block.subarray(0, -1).toString('hex')
  }
  assert.equal(updates(), '')
  assert.equal(updates(4096), '')
  assert.equal(updates(65_536), '', 'more than 4096 is not used')
  assert.equal(updates(0), '20')
  assert.equal(updates(100), '3f45')
  assert.equal(updates(0, 4096), '203fe11f')
  assert.equal(updates(0, 100, 50, 4096, 200), '203fa901')
  assert.equal(updates(100, 100), '3f45')
})

test('after the table was emptied its fields are sent in full again', () => {
  const encoder = new HpackEncoder()
  const list = ['accept', '*/*', 'x-other', 'b']
  assert.deepEqual(lengths([list, list, list], encoder), [5 + 11, 1 + 11, 2])
  encoder.setMaxTableBytes(0)
  encoder.setMaxTableBytes(4096)
  const decoder = new HpackDecoder(4096)
  const block = encode(encoder, list)
  assert.equal(decoder.decode(block, 0, block.length, ROOMY), DECODED)
  assert.deepEqual(decoder.fields, list)
  assert.ok(block.length > 12)
})

/** Few names and values, so that entries are found, chained and evicted. */
const names = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.constantFrom('user-agent', 'accept', ':path', 'x-a', 'x-b', 'date', 'audit-id', 'cookie'),
  },
  { weight: 2, arbitrary: fc.constantFrom(...KNOWN_NAMES) },
  { weight: 1, arbitrary: fc.stringMatching(/^[a-z-]{1,30}$/) },
)
const octets = fc.uint8Array({ maxLength: 200 }).map((bytes) => Buffer.from(bytes).toString('latin1'))
const values = fc.oneof(
  { weight: 6, arbitrary: fc.constantFrom('', 'a', 'b', 'c'.repeat(300), 'd'.repeat(127), 'GET', '/', '200') },
  { weight: 1, arbitrary: octets },
  { weight: 1, arbitrary: fc.integer({ min: 900, max: 40_000 }).map((length) => 'z'.repeat(length)) },
)
const lists = fc.array(fc.tuple(names, values), { maxLength: 20 }).map((pairs) => pairs.flat())

test('any lists come back, whatever the table sizes', () => {
  const step = fc.tuple(fc.array(fc.constantFrom(0, 40, 64, 300, 4096, 10_000), { maxLength: 2 }), lists)
  fc.assert(
    fc.property(fc.array(step, { maxLength: 15 }), (steps) => {
      const encoder = new HpackEncoder()
      const plain = new PlainDecoder(10_000)
      for (const [sizes, list] of steps) {
        for (const size of sizes) encoder.setMaxTableBytes(size)
        const found = plain.decode(encode(encoder, list), ROOMY)
        // Many of these lists are malformed; the plain decoder then returns no fields, but stays in sync.
        assert.notEqual(found.outcome, 'compression')
        if (found.outcome === 'decoded') assert.deepEqual(found.fields, list)
      }
    }),
    { numRuns: 1000 },
  )
})

test('both tables take as many small fields as fit, and the oldest leave in their order', () => {
  const short = fc.tuple(fc.integer({ min: 0, max: 140 }), fc.constantFrom('', 'a', 'b'))
  const many = fc.array(short, { minLength: 100, maxLength: 400 })
  fc.assert(
    fc.property(many, fc.constantFrom(4096, 2000, 700), (fields, tableBytes) => {
      const encoder = new HpackEncoder()
      encoder.setMaxTableBytes(tableBytes)
      const decoder = new HpackDecoder(4096)
      const plain = new PlainDecoder(4096)
      // Three times: told, entered, found.
      for (const [number, value] of fields.flatMap((field) => [field, field, field])) {
        const list = [`x-${number}`, value]
        const block = encode(encoder, list)
        assert.equal(decoder.decode(block, 0, block.length, ROOMY), DECODED)
        assert.deepEqual(decoder.fields, list)
        const found = plain.decode(block, ROOMY)
        assert.deepEqual(found.outcome === 'decoded' && found.fields, list)
      }
    }),
    { numRuns: 40 },
  )
})

test('nghttp2 reads what we write, over many blocks', async () => {
  const requests = fc.sample(
    fc
      .array(
        fc.tuple(
          fc.constantFrom('user-agent', 'accept', 'x-a', 'x-b', 'date', 'audit-id'),
          fc.constantFrom('a', 'b', 'c'.repeat(400), 'd'),
        ),
        { maxLength: 6 },
      )
      .map((pairs) => pairs.map(([name, value]): [string, string] => [name, value])),
    { numRuns: 60, seed: 1 },
  )
  const server = http2.createServer()
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const socket = net.connect((server.address() as AddressInfo).port, '127.0.0.1')
  try {
    const received = new Promise<string[][]>((resolve, reject) => {
      const all: string[][] = []
      server.on('stream', (stream, _headers, _flags, rawHeaders) => {
        stream.on('error', reject)
        if (all.push(rawHeaders as string[]) === requests.length) resolve(all)
      })
      server.on('session', (session) => session.on('error', reject))
      socket.on('error', reject)
    })
    socket.write('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n')
    socket.write(frame(0x4, 0, 0, Buffer.alloc(0)))
    const encoder = new HpackEncoder()
    const sent = requests.map((pairs, i) => {
      const list = [':method', 'GET', ':scheme', 'http', ':authority', 'a', ':path', `/${i >> 2}`, ...pairs.flat()]
      socket.write(frame(0x1, 0x5, 2 * i + 1, encode(encoder, list)))
      return list
    })
    assert.deepEqual(await received, sent)
  } finally {
    socket.destroy()
    server.close()
  }
})

function frame(type: number, flags: number, stream: number, payload: Buffer): Buffer {
  const head = Buffer.alloc(9)
  head.writeUIntBE(payload.length, 0, 3)
  head[3] = type
  head[4] = flags
  head.writeUInt32BE(stream, 5)
  return Buffer.concat([head, payload])
}
