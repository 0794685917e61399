import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { huffmanEncode, type Plain, PlainDecoder } from '../../../test/harness/frames/hpack-oracle.ts'
import { COMPRESSION, DECODED, HpackDecoder, MALFORMED, MAX_FIELDS, TOO_LARGE } from './decoder.ts'
import { HpackEncoder } from './encoder.ts'
import { PSEUDO_AUTHORITY, PSEUDO_METHOD, PSEUDO_PATH, PSEUDO_SCHEME, PSEUDO_STATUS } from './field-rules.ts'

const ROOMY = 1 << 20

function hex(text: string): Buffer {
  return Buffer.from(text.replaceAll(' ', ''), 'hex')
}

function run(decoder: HpackDecoder, block: Buffer, maxListBytes: number = ROOMY): number {
  return decoder.decode(block, 0, block.length, maxListBytes)
}

/** Feeds an oversized block in pieces. The first piece has the size updates. */
function skip(decoder: HpackDecoder, block: Buffer, pieceBytes: number): number {
  let rest = Buffer.alloc(0)
  for (let at = 0, size = 64; at === 0 || at < block.length; at += size, size = pieceBytes) {
    rest = Buffer.concat([rest, block.subarray(at, at + size)])
    const behind = decoder.skip(rest, 0, rest.length)
    if (behind < 0) return COMPRESSION
    rest = rest.subarray(behind)
  }
  return decoder.endSkip(rest.length === 0)
}

/** A literal without indexing, or with another first octet; strings without Huffman. */
function literal(name: string, value: string, first = 0): Buffer {
  const parts = [Buffer.from([first])]
  for (const text of [name, value]) parts.push(Buffer.from([text.length]), Buffer.from(text, 'latin1'))
  return Buffer.concat(parts)
}

/** Appendix C of RFC 7541. A table of 256 octets is what C.5 and C.6 start with. */
const COOKIE = 'foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1'
const FIRST = [':method', 'GET', ':scheme', 'http', ':path', '/', ':authority', 'www.example.com']
const THIRD = [':method', 'GET', ':scheme', 'https', ':path', '/index.html', ':authority', 'www.example.com']
const REQUESTS = [FIRST, [...FIRST, 'cache-control', 'no-cache'], [...THIRD, 'custom-key', 'custom-value']]
const DATE = 'Mon, 21 Oct 2013 20:13:21 GMT'
const MOVED = ['cache-control', 'private', 'date', DATE, 'location', 'https://www.example.com']
const FOUND = ['cache-control', 'private', 'date', DATE.replace(':21 ', ':22 '), 'location', 'https://www.example.com']
const RESPONSES = [
  [':status', '302', ...MOVED],
  [':status', '307', ...MOVED],
  [':status', '200', ...FOUND, 'content-encoding', 'gzip', 'set-cookie', COOKIE],
]
const VECTORS: readonly [section: string, blocks: readonly string[], lists: readonly string[][]][] = [
  ['C.2.1', ['400a 6375 7374 6f6d 2d6b 6579 0d63 7573 746f 6d2d 6865 6164 6572'], [['custom-key', 'custom-header']]],
  ['C.2.2', ['040c 2f73 616d 706c 652f 7061 7468'], [[':path', '/sample/path']]],
  ['C.2.3', ['1008 7061 7373 776f 7264 0673 6563 7265 74'], [['password', 'secret']]],
  ['C.2.4', ['82'], [[':method', 'GET']]],
  [
    'C.3',
    [
      '8286 8441 0f77 7777 2e65 7861 6d70 6c65 2e63 6f6d',
      '8286 84be 5808 6e6f 2d63 6163 6865',
      '8287 85bf 400a 6375 7374 6f6d 2d6b 6579 0c63 7573 746f 6d2d 7661 6c75 65',
    ],
    REQUESTS,
  ],
  [
    'C.4',
    [
      '8286 8441 8cf1 e3c2 e5f2 3a6b a0ab 90f4 ff',
      '8286 84be 5886 a8eb 1064 9cbf',
      '8287 85bf 4088 25a8 49e9 5ba9 7d7f 8925 a849 e95b b8e8 b4bf',
    ],
    REQUESTS,
  ],
  [
    'C.5',
    [
      `3fe1 01 4803 3330 3258 0770 7269 7661 7465 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a 3133 3a32 3120
       474d 546e 1768 7474 7073 3a2f 2f77 7777 2e65 7861 6d70 6c65 2e63 6f6d`,
      '4803 3330 37c1 c0bf',
      `88c1 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a 3133 3a32 3220 474d 54c0 5a04 677a 6970 7738 666f 6f3d
       4153 444a 4b48 514b 425a 584f 5157 454f 5049 5541 5851 5745 4f49 553b 206d 6178 2d61 6765 3d33 3630 303b 2076 6572
       7369 6f6e 3d31`,
    ],
    RESPONSES,
  ],
  [
    'C.6',
    [
      `3fe1 01 4882 6402 5885 aec3 771a 4b61 96d0 7abe 9410 54d4 44a8 2005 9504 0b81 66e0 82a6 2d1b ff6e 919d 29ad 1718
       63c7 8f0b 97c8 e9ae 82ae 43d3`,
      '4883 640e ffc1 c0bf',
      `88c1 6196 d07a be94 1054 d444 a820 0595 040b 8166 e084 a62d 1bff c05a 839b d9ab 77ad 94e7 821d d7f2 e6c7 b335 dfdf
       cd5b 3960 d5af 2708 7f36 72c1 ab27 0fb5 291f 9587 3160 65c0 03ed 4ee5 b106 3d50 07`,
    ],
    RESPONSES,
  ],
]

for (const [section, blocks, lists] of VECTORS) {
  test(`the examples of RFC 7541 appendix ${section}`, () => {
    const decoder = new HpackDecoder(4096)
    for (const [i, block] of blocks.entries()) {
      assert.equal(run(decoder, Buffer.from(block.replaceAll(/\s/g, ''), 'hex')), DECODED)
      assert.deepEqual(decoder.fields, lists[i])
    }
  })
}

test('entries beyond the table size are evicted', () => {
  const decoder = new HpackDecoder(4096)
  // After C.5.1 the table of 256 has four entries, 222 octets; :status 307 then evicts :status 302 (C.5.2).
  const [first = '', second = ''] = VECTORS.find(([section]) => section === 'C.5')?.[1] ?? []
  assert.equal(run(decoder, Buffer.from(first.replaceAll(/\s/g, ''), 'hex')), DECODED)
  assert.equal(run(decoder, hex('c1')), DECODED, 'the fourth entry')
  assert.equal(run(decoder, hex(second)), DECODED)
  assert.equal(run(decoder, hex('c2')), COMPRESSION, 'a fifth entry')
})

test('decoding errors', () => {
  const broken: Readonly<Record<string, string>> = {
    'index 0': '80',
    'index of an empty table': 'be',
    'name of an empty table': '7e 01 61',
    'index in the far': 'ff ff ff 7f',
    'an integer that ends early': 'ff',
    'an integer that goes on': 'ff 80 80 80',
    'an integer of 6 octets': 'ff 80 80 80 80 80 00',
    'an integer above 2^28': 'ff 80 80 80 80 01',
    'a string that ends early': '00 01 61 05 62 62',
    'a literal without a name': '40',
    'a literal without a value': '00 01 61',
    'a string length that ends early': '00 7f',
    'a Huffman string with EOS': '00 01 61 84 ff ff ff ff',
    'a Huffman name padded with zeros': '00 81 00 01 61',
    'a size update behind a field': '82 20',
    'a size update above our setting': '3f e2 1f',
  }
  for (const [what, octets] of Object.entries(broken)) {
    const decoder = new HpackDecoder(4096)
    assert.equal(run(decoder, hex(octets)), COMPRESSION, what)
    assert.deepEqual(decoder.fields, [], what)
  }
})

test('an integer has at most 5 octets behind its prefix; zeros may fill them up', () => {
  const value = 'a'.repeat(127)
  const block = (length: string): Buffer => Buffer.concat([hex(`04 ${length}`), Buffer.from(value)])
  for (const length of ['7f 00', '7f 80 00', '7f 80 80 80 80 00']) {
    const decoder = new HpackDecoder(4096)
    assert.equal(run(decoder, block(length)), DECODED, length)
    assert.deepEqual(decoder.fields, [':path', value])
  }
  assert.equal(run(new HpackDecoder(4096), block('7f 80 80 80 80 80 00')), COMPRESSION)
})

test('size updates: several in front, up to our setting; a peer that has not seen it uses 4096', () => {
  assert.equal(run(new HpackDecoder(4096), hex('20 3fe11f 82')), DECODED)
  assert.equal(run(new HpackDecoder(65_536), hex('3fe1ff03 82')), DECODED)
  const small = new HpackDecoder(0)
  assert.equal(run(small, hex('4001 61 01 62 be')), DECODED)
  assert.deepEqual(small.fields, ['a', 'b', 'a', 'b'])
  assert.equal(run(small, hex('20 4001 61 01 62')), DECODED)
  assert.equal(run(small, hex('be')), COMPRESSION, 'nothing fits into a table of 0')
  assert.equal(run(new HpackDecoder(0), hex('21')), COMPRESSION)
})

test('an entry larger than the table empties it (RFC 7541 section 4.4)', () => {
  const decoder = new HpackDecoder(4096)
  assert.equal(run(decoder, Buffer.concat([hex('3f21'), literal('a', 'b', 0x40), hex('be')])), DECODED)
  assert.equal(run(decoder, literal('a', 'b'.repeat(33), 0x40)), DECODED)
  assert.equal(run(decoder, hex('be')), COMPRESSION)
})

test('a block can lie anywhere in a buffer, and leaves nothing of it behind', () => {
  const decoder = new HpackDecoder(4096)
  const block = Buffer.concat([hex('ffff'), literal('a-name-of-its-own', 'a value of some length', 0x40), hex('ff')])
  assert.equal(decoder.decode(block, 2, block.length - 1, ROOMY), DECODED)
  block.fill(0x78)
  assert.deepEqual(decoder.fields, ['a-name-of-its-own', 'a value of some length'])
  assert.equal(run(decoder, hex('be')), DECODED)
  assert.deepEqual(decoder.fields, ['a-name-of-its-own', 'a value of some length'])
})

test('a list above the limit is dropped, and the table stays in step', () => {
  const decoder = new HpackDecoder(4096)
  const block = Buffer.concat([literal('a', 'b'.repeat(100), 0x40), literal('c', 'd', 0x40)])
  assert.equal(run(decoder, block, 167), DECODED)
  assert.equal(run(decoder, hex('bf be'), 167), DECODED)
  assert.equal(run(decoder, hex('bf be'), 166), TOO_LARGE)
  assert.deepEqual(decoder.fields, [])
  assert.equal(run(decoder, Buffer.concat([hex('bf'), literal('e', 'f', 0x40)]), 100), TOO_LARGE)
  assert.equal(run(decoder, hex('be')), DECODED)
  assert.deepEqual(decoder.fields, ['e', 'f'])
})

test('a small block that stands for a huge list (HPACK bomb) costs no memory', () => {
  const decoder = new HpackDecoder(4096)
  assert.equal(run(decoder, hex('00 01 61 00')), DECODED)
  const bomb = Buffer.concat([literal('a', 'b'.repeat(127), 0x40), Buffer.alloc(16_000, 0xbe)])
  assert.equal(run(decoder, bomb, 65_536), TOO_LARGE)
  assert.deepEqual(decoder.fields, [])
})

test('a list of more fields than anyone needs is too large, whatever the limit', () => {
  const decoder = new HpackDecoder(4096)
  assert.equal(run(decoder, Buffer.alloc(MAX_FIELDS, 0x8f)), DECODED)
  assert.equal(decoder.fields.length, 2 * MAX_FIELDS)
  assert.equal(run(decoder, Buffer.alloc(MAX_FIELDS + 1, 0x8f)), TOO_LARGE)
})

test('which pseudo-header fields came, and content-length', () => {
  const decoder = new HpackDecoder(4096)
  assert.equal(run(decoder, Buffer.concat([hex('82 84 87'), literal(':authority', 'a')])), DECODED)
  assert.equal(decoder.pseudoMask, PSEUDO_METHOD | PSEUDO_PATH | PSEUDO_SCHEME | PSEUDO_AUTHORITY)
  assert.equal(decoder.pseudoCount, 4)
  assert.equal(decoder.contentLength, -1)
  const lengths: readonly [values: string[], number][] = [
    [['0'], 0],
    [['1024'], 1024],
    [['7', '007'], 7],
    [['7', '8'], -2],
    [['7', '8', '8'], -2],
    [[''], -2],
    [['-1'], -2],
    [['1,1'], -2],
    [['0x10'], -2],
    [['1000000000000000'], -2],
  ]
  for (const [values, expected] of lengths) {
    const fields = values.map((value) => literal('content-length', value))
    assert.equal(run(decoder, Buffer.concat([hex('88'), ...fields])), DECODED)
    assert.equal(decoder.contentLength, expected, values.join(' '))
    assert.equal(decoder.pseudoMask, PSEUDO_STATUS)
  }
  assert.equal(run(decoder, hex('88')), DECODED)
  assert.equal(decoder.contentLength, -1)
  // Also from the table.
  assert.equal(run(decoder, literal('content-length', '12', 0x40)), DECODED)
  assert.equal(run(decoder, hex('be')), DECODED)
  assert.equal(decoder.contentLength, 12)
})

test('malformed fields, as literals and from the table; the table stays in step', () => {
  const bad: readonly [string, string][] = [
    ['', 'a'],
    ['Accept', 'a'],
    ['a b', 'a'],
    ['a:', 'a'],
    ['\xe4', 'a'],
    [':host', 'a'],
    [':', 'a'],
    ['connection', 'close'],
    ['keep-alive', 'a'],
    ['proxy-connection', 'a'],
    ['transfer-encoding', 'chunked'],
    ['upgrade', 'websocket'],
    ['te', 'gzip'],
    ['te', 'trailers, gzip'],
    ['te', ''],
    ['a', 'b\nc'],
    ['a', 'b\rc'],
    ['a', 'b\0c'],
    ['a', 'b\x1bc'],
    ['a', 'b\x7f'],
    ['a', ' b'],
    ['a', 'b '],
    ['a', '\tb'],
    ['a', 'b\t'],
    ['a', ' '],
    [':path', '/ '],
  ]
  for (const [name, value] of bad) {
    const decoder = new HpackDecoder(4096)
    const what = JSON.stringify([name, value])
    assert.equal(run(decoder, literal(name, value)), MALFORMED, what)
    assert.deepEqual(decoder.fields, [], what)
    assert.equal(run(decoder, literal(name, value, 0x40)), MALFORMED, what)
    assert.equal(run(decoder, hex('be')), MALFORMED, what)
    // The name of an entry with a bad value may be reused.
    const nameIsGood = !/^(|Accept|a b|a:|\xe4|:host|:|connection|keep-alive|proxy-.*|transfer-.*|upgrade)$/.test(name)
    const reused = Buffer.concat([hex('0f2f 08'), Buffer.from('trailers')])
    assert.equal(run(decoder, reused), nameIsGood ? DECODED : MALFORMED, what)
  }
  for (const [name, value] of [
    ['te', 'trailers'],
    ['te', 'Trailers'],
    ['a', ''],
    ['a', 'b\tc d'],
    ['a', '\xff'],
    ["!#$%&'*+-.^_`|~09az", '"'],
    [':protocol', 'websocket'],
  ] as const) {
    assert.equal(run(new HpackDecoder(4096), literal(name, value)), DECODED, JSON.stringify([name, value]))
  }
})

test('pseudo-header fields come first and once (RFC 9113 section 8.3)', () => {
  assert.equal(run(new HpackDecoder(4096), hex('82 82')), MALFORMED)
  assert.equal(run(new HpackDecoder(4096), hex('82 83')), MALFORMED)
  assert.equal(run(new HpackDecoder(4096), hex('90 82')), MALFORMED)
  assert.equal(run(new HpackDecoder(4096), Buffer.concat([literal('content-length', '1'), hex('82')])), MALFORMED)
  assert.equal(run(new HpackDecoder(4096), Buffer.concat([literal('te', 'trailers'), hex('82')])), MALFORMED)
  assert.equal(run(new HpackDecoder(4096), hex('82 87 84 90')), DECODED)
})

test('a literal that is repeated octet for octet, or nearly so', () => {
  const decoder = new HpackDecoder(4096)
  const long = `Bearer ${'x'.repeat(3000)}`
  const lists = ['/a', '/a', '/ab', '/a', '/', '/a?b', long, '/a?b', long, long, '/a', 'a ', 'a ', '/a'].map(
    (value) => {
      const code = huffmanEncode(value)
      const size =
        code.length < 127 ? [0x80 | code.length] : [0xff, ((code.length - 127) & 0x7f) | 0x80, (code.length - 127) >> 7]
      const block = Buffer.concat([hex('0f08'), Buffer.from(size), code, hex('04'), Buffer.from(size), code])
      return { value, block }
    },
  )
  for (const { value, block } of lists) {
    // :path after authorization, which is malformed; each of them alone is not, unless it ends in a space.
    assert.equal(run(decoder, block), MALFORMED)
    const path = block.subarray(block.length / 2 + 0.5)
    const expected = value.endsWith(' ') ? MALFORMED : DECODED
    assert.equal(run(decoder, path), expected, value)
    assert.deepEqual(decoder.fields, expected === DECODED ? [':path', value] : [])
    for (let end = 1; end < path.length; end++)
      assert.equal(run(new HpackDecoder(4096), path.subarray(0, end)), COMPRESSION)
    assert.equal(decoder.decode(path, 0, path.length - 1, ROOMY), COMPRESSION, 'the last octet is not of the block')
  }
})

test('a literal that enters the table is read each time that it is sent, between others that do not', () => {
  const decoder = new HpackDecoder(4096)
  const field = (first: string, value: string): Buffer =>
    Buffer.concat([hex(first), Buffer.from([value.length]), Buffer.from(value)])
  // Both :path, with and without indexing (RFC 7541 sections 6.2.1 and 6.2.2).
  const [kept, passed] = ['44', '04']
  for (const [first, value] of [
    [kept, '/a'],
    [passed, '/a'],
    [kept, '/b'],
    [passed, '/a'],
    [kept, '/a'],
    [kept, '/a'],
    [passed, '/b'],
  ] as const) {
    assert.equal(run(decoder, field(first, value)), DECODED)
    assert.deepEqual(decoder.fields, [':path', value])
  }
  // The last that entered, and the one before it.
  assert.equal(run(decoder, hex('be')), DECODED)
  assert.deepEqual(decoder.fields, [':path', '/a'])
  assert.equal(run(decoder, hex('c0')), DECODED)
  assert.deepEqual(decoder.fields, [':path', '/b'])
})

const OUTCOMES: Readonly<Record<Plain['outcome'], number>> = {
  decoded: DECODED,
  compression: COMPRESSION,
  'too large': TOO_LARGE,
  malformed: MALFORMED,
}

/** Values, several of which are in the static table or special in HTTP/2. */
const names = fc.constantFrom(
  ':method',
  ':path',
  ':status',
  'te',
  'content-length',
  'accept',
  'a',
  'x-long-name-of-a-field',
)
const values = fc.oneof(
  fc.constantFrom('', 'GET', '/', '200', 'trailers', '7', 'x'.repeat(900), 'x'.repeat(5000)),
  fc.string({ maxLength: 40 }),
)
const lists = fc.array(fc.tuple(names, values), { maxLength: 12 })
const blockOf = lists.map((pairs) => ({ kind: 'list' as const, list: pairs.flat() }))
const raw = fc
  .array(
    fc.oneof(
      fc
        .tuple(names, values, fc.constantFrom(0x00, 0x10, 0x40))
        .map(([n, v, first]) => literal(n, v.slice(0, 126), first)),
      fc.tuple(values, fc.constantFrom(0x04, 0x0f08, 0x44, 0x7e, 0x17)).map(([v, first]) => {
        const code = huffmanEncode(v.slice(0, 90))
        return Buffer.concat([
          hex(first.toString(16).padStart(first > 255 ? 4 : 2, '0')),
          Buffer.from([0x80 | code.length]),
          code,
        ])
      }),
      fc.integer({ min: 0x80, max: 0xff }).map((octet) => Buffer.from([octet])),
      fc.constantFrom(hex('20'), hex('3f81 01'), hex('3fe11f')),
    ),
    { maxLength: 10 },
  )
  .map((parts) => ({ kind: 'raw' as const, block: Buffer.concat(parts) }))
/** Octets that overwrite a block: position and content. */
const damage = fc.option(fc.tuple(fc.nat(400), fc.uint8Array({ minLength: 1, maxLength: 3 })), { freq: 3 })

test('any blocks give the same as the plain decoder', () => {
  // Some are skipped like oversized blocks, in pieces of this many octets: the table must match decoding them.
  const skipped = fc.option(fc.integer({ min: 1, max: 500 }), { freq: 2, nil: 0 })
  const step = fc.tuple(fc.oneof(blockOf, raw), damage, fc.constantFrom(200, 2000, ROOMY), skipped)
  fc.assert(
    fc.property(fc.array(step, { maxLength: 8 }), fc.constantFrom(0, 256, 4096, 8192), (steps, limit) => {
      const encoder = new HpackEncoder()
      const plain = new PlainDecoder(limit)
      const decoder = new HpackDecoder(limit)
      for (const [source, harm, maxListBytes, pieceBytes] of steps) {
        const room = Buffer.alloc(100_000)
        const block = source.kind === 'raw' ? source.block : room.subarray(0, encoder.encode(source.list, room, 0))
        if (harm !== null && block.length > 0)
          block.set(harm[1].slice(0, block.length), Math.min(harm[0], block.length - 1) % Math.max(1, block.length - 3))
        const expected = plain.decode(block, maxListBytes)
        if (pieceBytes > 0) {
          const outcome = skip(decoder, block, pieceBytes)
          // Huffman codes of strings that don't enter the table are not checked.
          if (expected.outcome === 'compression') return
          assert.equal(outcome, TOO_LARGE)
          continue
        }
        assert.equal(run(decoder, block, maxListBytes), OUTCOMES[expected.outcome])
        assert.deepEqual(decoder.fields, expected.fields)
        if (expected.outcome === 'compression') return
        if (expected.outcome === 'decoded') assert.equal(decoder.contentLength, expected.contentLength)
      }
    }),
    { numRuns: 3000 },
  )
})

test('any octets are decoded or refused, never thrown on', () => {
  fc.assert(
    fc.property(fc.array(fc.uint8Array({ maxLength: 60 }), { maxLength: 5 }), (blocks) => {
      const decoder = new HpackDecoder(4096)
      const plain = new PlainDecoder(4096)
      for (const octets of blocks) {
        const expected = plain.decode(octets, 4096)
        assert.equal(run(decoder, Buffer.from(octets), 4096), OUTCOMES[expected.outcome])
        assert.deepEqual(decoder.fields, expected.fields)
        if (expected.outcome === 'compression') return
      }
    }),
    { numRuns: 3000 },
  )
})
