import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import {
  CRC32C_BEGIN,
  crc32cAdd,
  crc32cEnd,
  type DeclaredEnds,
  type ProxyHeader,
  ProxyHeaderReader,
} from './proxy-header.ts'

const SIGNATURE = Buffer.from('0d0a0d0a000d0a515549540a', 'hex')
const BEHIND = Buffer.from('\x16\x03\x01 the ClientHello')
const V4 = Buffer.from('c0000201c6336407dc0401bb', 'hex')
const V4_ENDS: DeclaredEnds = {
  sourceAddress: '192.0.2.1',
  sourcePort: 56_324,
  destinationAddress: '198.51.100.7',
  destinationPort: 443,
}
const V6 = Buffer.from(`20010db8${'0'.repeat(23)}1fd00${'0'.repeat(27)}7dc0401bb`, 'hex')
const V6_ENDS: DeclaredEnds = { ...V4_ENDS, sourceAddress: '2001:db8::1', destinationAddress: 'fd00::7' }

function v2(verCmd: number, family: number, body: Buffer): Buffer {
  const head = Buffer.from([verCmd, family, body.length >> 8, body.length & 0xff])
  return Buffer.concat([SIGNATURE, head, body])
}

function tlv(type: number, value: Buffer): Buffer {
  return Buffer.concat([Buffer.from([type, value.length >> 8, value.length & 0xff]), value])
}

/** Bit by bit, over the whole header. */
function crcOf(bytes: Uint8Array): number {
  let crc = 0xffffffff
  for (const byte of bytes) {
    for (let bit = 0; bit < 8; bit++) {
      const one = ((crc ^ (byte >> bit)) & 1) === 1
      crc = one ? (crc >>> 1) ^ 0x82f63b78 : crc >>> 1
    }
  }
  return (crc ^ 0xffffffff) >>> 0
}

/** With a checksum TLV among others; `flip` corrupts it. */
function withCrc(verCmd: number, family: number, addresses: Buffer, flip = 0): Buffer {
  const before = tlv(0x04, Buffer.alloc(5))
  const header = v2(
    verCmd,
    family,
    Buffer.concat([addresses, before, tlv(0x03, Buffer.alloc(4)), tlv(0xea, Buffer.from('\x01vpce-1'))]),
  )
  header.writeUInt32BE((crcOf(header) ^ flip) >>> 0, 16 + addresses.length + before.length + 3)
  return header
}

function read(bytes: Buffer, cuts: readonly number[] = []): { result: ProxyHeader; consumed: number } {
  const reader = new ProxyHeaderReader()
  let at = 0
  for (const end of [...cuts.filter((cut) => cut > 0 && cut < bytes.length).sort((a, b) => a - b), bytes.length]) {
    const result = reader.read(bytes.subarray(at, end))
    if (result.kind === 'complete') return { result, consumed: at + result.length }
    if (result.kind === 'invalid') return { result, consumed: at }
    at = end
  }
  return { result: { kind: 'more' }, consumed: at }
}

/** Whole, byte by byte, and split in two at each position: what follows the header is never consumed. */
function assertReads(header: Buffer, ends: DeclaredEnds | undefined): void {
  const bytes = Buffer.concat([header, BEHIND])
  const ways = [
    [],
    [...bytes.keys()],
    ...(header.length < 1_000 ? [...bytes.keys()].map((cut) => [cut]) : [[1_000], [header.length]]),
  ]
  for (const cuts of ways) {
    const { result, consumed } = read(bytes, cuts)
    if (result.kind !== 'complete')
      assert.fail(`${JSON.stringify(result)} of ${header.toString('latin1').slice(0, 120)}`)
    assert.deepEqual(result.ends, ends)
    assert.equal(consumed, header.length)
  }
  for (let end = 0; end < Math.min(header.length, 400); end++) {
    assert.equal(read(header.subarray(0, end)).result.kind, 'more', `the first ${end} bytes`)
  }
}

function assertInvalid(bytes: Buffer | string, problem: string): void {
  const given = Buffer.from(bytes)
  for (const cuts of [[], [...given.keys()]]) {
    assert.deepEqual(read(given, cuts).result, { kind: 'invalid', problem }, given.toString('latin1').slice(0, 120))
  }
}

describe('version 1', () => {
  const valid: readonly [string, DeclaredEnds | undefined][] = [
    ['PROXY TCP4 192.0.2.1 198.51.100.7 56324 443\r\n', V4_ENDS],
    ['PROXY TCP6 2001:db8::1 fd00::7 56324 443\r\n', V6_ENDS],
    ['PROXY TCP6 2001:0DB8:0000::0001 FD00:0:0:0:0:0:0:7 56324 443\r\n', V6_ENDS],
    ['PROXY TCP6 ::ffff:192.0.2.1 ::ffff:198.51.100.7 56324 443\r\n', V4_ENDS],
    [
      'PROXY TCP4 0.0.0.0 255.255.255.255 0 65535\r\n',
      { sourceAddress: '0.0.0.0', sourcePort: 0, destinationAddress: '255.255.255.255', destinationPort: 65_535 },
    ],
    ['PROXY UNKNOWN\r\n', undefined],
    ['PROXY UNKNOWN what ever \xff\r\n', undefined],
    [`PROXY UNKNOWN ${'f'.repeat(91)}\r\n`, undefined],
  ]
  for (const [line, ends] of valid) {
    test(JSON.stringify(line).slice(0, 60), () => assertReads(Buffer.from(line, 'latin1'), ends))
  }
  const invalid: readonly [string, string][] = [
    ['GET / HTTP/1.1\r\n', 'no PROXY header'],
    ['PRI * HTTP/2.0\r\n', 'no PROXY header'],
    ['proxy TCP4 192.0.2.1 198.51.100.7 56324 443\r\n', 'no PROXY header'],
    ['\x16\x03\x01', 'no PROXY header'],
    ['PROXY\r\n', 'unknown protocol'],
    ['PROXY  TCP4 192.0.2.1 198.51.100.7 1 2\r\n', 'unknown protocol'],
    ['PROXY UDP4 192.0.2.1 198.51.100.7 1 2\r\n', 'unknown protocol'],
    ['PROXY UNKNOWNS\r\n', 'unknown protocol'],
    ['PROXY TCP4 192.0.2.1 198.51.100.7 1\r\n', 'not four addresses and ports'],
    ['PROXY TCP4 192.0.2.1 198.51.100.7 1 2 3\r\n', 'not four addresses and ports'],
    ['PROXY TCP4 192.0.2.1  198.51.100.7 1 2\r\n', 'not four addresses and ports'],
    ['PROXY TCP4 192.0.2.1 198.51.100.7 01 2\r\n', 'invalid port'],
    ['PROXY TCP4 192.0.2.1 198.51.100.7 1 65536\r\n', 'invalid port'],
    ['PROXY TCP4 192.0.2.1 198.51.100.7 -1 2\r\n', 'invalid port'],
    ['PROXY TCP4 192.0.2.01 198.51.100.7 1 2\r\n', 'invalid address'],
    ['PROXY TCP4 2001:db8::1 198.51.100.7 1 2\r\n', 'invalid address'],
    ['PROXY TCP6 192.0.2.1 fd00::7 1 2\r\n', 'invalid address'],
    ['PROXY TCP6 fe80::1%eth0 fd00::7 1 2\r\n', 'invalid address'],
    ['PROXY TCP4 192.0.2.1 198.51.100.7 1 2\n', 'line too long'],
    ['PROXY TCP4 192.0.2.1 198.51.100.7 1 2\rX', 'line that does not end in CRLF'],
    ['PROXY UNKNOWN', 'line too long'],
  ]
  for (const [line, problem] of invalid) {
    // Lines that never end: too long at byte 108, not before.
    const bytes = problem === 'line too long' ? line.padEnd(200, 'x') : line
    test(JSON.stringify(line).slice(0, 60), () => assertInvalid(Buffer.from(bytes, 'latin1'), problem))
  }
  test('107 bytes are allowed, and no more', () => {
    const line = (length: number): string => `${'PROXY UNKNOWN '.padEnd(length - 2, 'f')}\r\n`
    assertReads(Buffer.from(line(107)), undefined)
    assertInvalid(line(108), 'line too long')
  })
})

describe('version 2', () => {
  const aws = tlv(0xea, Buffer.from('\x01vpce-0123456789abcdef0'))
  const others = Buffer.concat([
    tlv(0x01, Buffer.from('h2')),
    tlv(0x02, Buffer.from('prod.example.com')),
    tlv(0x05, Buffer.alloc(128, 7)),
    tlv(0x20, Buffer.concat([Buffer.from('0100000000', 'hex'), tlv(0x21, Buffer.from('TLSv1.3'))])),
    tlv(0x30, Buffer.from('netns')),
    tlv(0x04, Buffer.alloc(0)),
    aws,
  ])
  const valid: readonly [string, Buffer, DeclaredEnds | undefined][] = [
    ['IPv4', v2(0x21, 0x11, V4), V4_ENDS],
    ['IPv6', v2(0x21, 0x21, V6), V6_ENDS],
    ['TLVs are skipped', v2(0x21, 0x11, Buffer.concat([V4, others])), V4_ENDS],
    ['TLVs behind IPv6', v2(0x21, 0x21, Buffer.concat([V6, others])), V6_ENDS],
    ['a checksum', withCrc(0x21, 0x11, V4), V4_ENDS],
    ['a checksum, IPv6', withCrc(0x21, 0x21, V6), V6_ENDS],
    ['LOCAL', v2(0x20, 0x00, Buffer.alloc(0)), undefined],
    ['LOCAL with addresses, which do not count', v2(0x20, 0x11, V4), undefined],
    ['LOCAL with an unknown family', v2(0x20, 0x77, Buffer.from('anything')), undefined],
    ['LOCAL that is too short for its family', v2(0x20, 0x21, Buffer.alloc(3)), undefined],
    ['LOCAL with a checksum', withCrc(0x20, 0x00, Buffer.alloc(0)), undefined],
    ['UNSPEC', v2(0x21, 0x00, Buffer.alloc(0)), undefined],
    ['UNSPEC with TLVs', v2(0x21, 0x00, others), undefined],
    ['a Unix socket', v2(0x21, 0x31, Buffer.alloc(216, 0x2f)), undefined],
    ['65,535 bytes', v2(0x21, 0x11, Buffer.concat([V4, tlv(0x04, Buffer.alloc(65_535 - 12 - 3, 0xff))])), V4_ENDS],
    ['65,535 bytes of LOCAL', v2(0x20, 0x77, Buffer.alloc(65_535, 0x0d)), undefined],
  ]
  for (const [name, header, ends] of valid) test(name, () => assertReads(header, ends))

  const invalid: readonly [string, Buffer, string][] = [
    ['version 1 in binary', v2(0x11, 0x11, V4), 'unknown version'],
    ['version 3', v2(0x31, 0x11, V4), 'unknown version'],
    ['another command', v2(0x22, 0x11, V4), 'unknown command'],
    ['UDP', v2(0x21, 0x12, V4), 'unknown address family'],
    ['UDP over IPv6', v2(0x21, 0x22, V6), 'unknown address family'],
    ['TCP of no family', v2(0x21, 0x01, V4), 'unknown address family'],
    ['an unknown family', v2(0x21, 0x41, V4), 'unknown address family'],
    ['too short', v2(0x21, 0x11, V4.subarray(0, 11)), 'too short for its addresses'],
    ['IPv6 in the length of IPv4', v2(0x21, 0x21, V4), 'too short for its addresses'],
    ['a Unix socket that is too short', v2(0x21, 0x31, Buffer.alloc(215)), 'too short for its addresses'],
    ['a wrong checksum', withCrc(0x21, 0x11, V4, 1), 'wrong checksum'],
    ['a checksum wrong in its last bit', withCrc(0x21, 0x21, V6, 0x80000000), 'wrong checksum'],
    ['LOCAL with a wrong checksum', withCrc(0x20, 0x00, Buffer.alloc(0), 1), 'wrong checksum'],
    ['a checksum of three bytes', v2(0x21, 0x11, Buffer.concat([V4, tlv(3, Buffer.alloc(3))])), 'malformed checksum'],
    [
      'two checksums',
      v2(0x21, 0x11, Buffer.concat([V4, tlv(3, Buffer.alloc(4)), tlv(3, Buffer.alloc(4))])),
      'malformed checksum',
    ],
    [
      'a TLV that is longer than the header',
      v2(0x21, 0x11, Buffer.concat([V4, Buffer.from([4, 0, 1])])),
      'TLV beyond the end',
    ],
    ['half of the head of a TLV', v2(0x21, 0x11, Buffer.concat([V4, Buffer.from([4, 0])])), 'TLV beyond the end'],
    [
      'another signature',
      Buffer.concat([SIGNATURE.subarray(0, 11), Buffer.from('\x0b!\x11\0\x0c'), V4]),
      'no PROXY header',
    ],
    ['a line feed that should be NUL', Buffer.from('\r\n\r\n\n\r\nQUIT\n!'), 'no PROXY header'],
  ]
  for (const [name, header, problem] of invalid) test(name, () => assertInvalid(header, problem))
})

test('only the first of two headers is read: what a client has put behind it is not trusted', () => {
  const own = v2(0x21, 0x11, V4)
  const forged = v2(0x21, 0x21, V6)
  for (const first of [own, Buffer.from('PROXY TCP4 192.0.2.1 198.51.100.7 56324 443\r\n')]) {
    const { result, consumed } = read(Buffer.concat([first, forged]))
    assert.deepEqual(result.kind === 'complete' && result.ends, V4_ENDS)
    assert.equal(consumed, first.length)
  }
})

test('the checksum of the specification (RFC 3720 appendix B.4)', () => {
  const of = (bytes: Uint8Array): number => crc32cEnd(bytes.reduce(crc32cAdd, CRC32C_BEGIN))
  assert.equal(of(Buffer.from('123456789')), 0xe3069283)
  assert.equal(of(Buffer.alloc(32)), 0x8a9136aa)
  assert.equal(of(Buffer.alloc(32, 0xff)), 0x62a8ab43)
})

/** An independent implementation of the specification, on whole buffers. undefined = incomplete; 'bad' = invalid. */
function model(bytes: Buffer): { ends: readonly [string, number] | undefined; length: number } | 'bad' | undefined {
  if (!bytes.subarray(0, 12).equals(SIGNATURE.subarray(0, bytes.length))) return 'bad'
  if (bytes.length > 12 && ![0x20, 0x21].includes(bytes.readUInt8(12))) return 'bad'
  if (bytes.length < 16) return undefined
  const [command, family, length] = [bytes.readUInt8(12) & 1, bytes.readUInt8(13), 16 + bytes.readUInt16BE(14)]
  const sizes: Readonly<Record<number, number>> = { 0: 0, 17: 12, 33: 36, 49: 216 }
  const size = sizes[family]
  const local = command === 0
  if (!local && (size === undefined || 16 + size > length)) return 'bad'
  const tlvs = local && (size === undefined || 16 + size > length) ? length : 16 + (size ?? 0)
  const zeroed = Buffer.from(bytes)
  let declared: number | undefined
  let at = tlvs
  while (at < length) {
    if (bytes.length < at + 3)
      return bytes.length >= length || at + 3 > length ? (bytes.length < length ? undefined : 'bad') : undefined
    const end = at + 3 + bytes.readUInt16BE(at + 1)
    if (end > length) return 'bad'
    if (bytes.readUInt8(at) === 3) {
      if (end - at !== 7 || declared !== undefined) return 'bad'
      if (bytes.length < end) return undefined
      declared = bytes.readUInt32BE(at + 3)
      zeroed.fill(0, at + 3, end)
    }
    at = end
  }
  if (bytes.length < length) return undefined
  if (declared !== undefined && crcOf(zeroed.subarray(0, length)) !== declared) return 'bad'
  const known = !local && family === 0x11
  return { length, ends: known ? [bytes.subarray(16, 20).join('.'), bytes.readUInt16BE(24)] : undefined }
}

test('property: any header, damaged and cut anyhow, is read as by a simple reader of whole buffers', () => {
  const value = fc.uint8Array({ maxLength: 40 }).map((bytes) => Buffer.from(bytes))
  const tlvs = fc
    .array(fc.tuple(fc.constantFrom(1, 2, 3, 4, 5, 0x20, 0x30, 0xea), value), { maxLength: 4 })
    .map((all) => Buffer.concat(all.map(([type, bytes]) => tlv(type, type === 3 ? bytes.subarray(0, 4) : bytes))))
  const header = fc
    .record({
      verCmd: fc.constantFrom(0x20, 0x21, 0x21, 0x21, 0x22, 0x11),
      family: fc.constantFrom(0, 0x11, 0x11, 0x11, 0x31, 0x12, 0x55),
      tlvs,
      checksum: fc.boolean(),
      damage: fc.option(fc.tuple(fc.nat(80), fc.integer({ min: 1, max: 255 })), { freq: 3 }),
    })
    .map(({ verCmd, family, tlvs: rest, checksum, damage }) => {
      const bytes = checksum ? withCrc(verCmd, family, V4) : v2(verCmd, family, Buffer.concat([V4, rest]))
      if (damage !== null) bytes[damage[0] % bytes.length] = (bytes[damage[0] % bytes.length] ?? 0) ^ damage[1]
      return Buffer.concat([bytes, BEHIND])
    })
  fc.assert(
    fc.property(header, fc.array(fc.nat(120), { maxLength: 6 }), fc.nat(160), (bytes, cuts, end) => {
      const given = bytes.subarray(0, end)
      const expected = model(given)
      const { result, consumed } = read(given, cuts)
      if (result.kind === 'more') {
        // The reference detects some errors earlier, because it does not go byte by byte.
        assert.ok(expected === undefined || (expected === 'bad' && given.length < 16), JSON.stringify(expected))
      } else if (result.kind === 'invalid') assert.equal(expected, 'bad', result.problem)
      else {
        assert.ok(expected !== undefined && expected !== 'bad')
        assert.equal(consumed, expected.length)
        const ends = result.ends && [result.ends.sourceAddress, result.ends.sourcePort]
        assert.deepEqual(ends, expected.ends)
      }
    }),
    { numRuns: 3_000 },
  )
})

test('property: whatever the bytes are, nothing is thrown, and a length is never beyond what was given', () => {
  fc.assert(
    fc.property(
      fc.uint8Array({ maxLength: 300 }),
      fc.constantFrom('', 'PROXY ', 'PROXY TCP4 ', '\r\n\r\n\0\r\nQUIT\n!'),
      (bytes, begun) => {
        const given = Buffer.concat([Buffer.from(begun, 'latin1'), bytes])
        const { consumed } = read(given, [7, 40])
        assert.ok(consumed <= given.length)
      },
    ),
    { numRuns: 3_000 },
  )
})
