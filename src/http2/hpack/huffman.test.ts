import assert from 'node:assert/strict'
import { once } from 'node:events'
import http2 from 'node:http2'
import net, { type AddressInfo } from 'node:net'
import { test } from 'node:test'
import fc from 'fast-check'
import { fromBits, huffmanEncode, plainHuffmanDecode } from '../../../test/harness/frames/hpack-oracle.ts'
import { HEADERS } from '../frames.ts'
import { huffmanBound, huffmanDecode } from './huffman.ts'

function decoded(octets: Uint8Array): Buffer | undefined {
  const out = Buffer.alloc(huffmanBound(octets.length))
  const length = huffmanDecode(octets, 0, octets.length, out)
  return length < 0 ? undefined : out.subarray(0, length)
}

test('every octet has the code that nghttp2 gives it', async () => {
  // Cheap letters around the octet make nghttp2 choose Huffman for each value. Node can't send NUL; its code follows
  // anyway, as the first of 13 bits: an error would shift the others of that length.
  const values = Array.from({ length: 255 }, (_, i) => `${'a'.repeat(40)}${String.fromCharCode(i + 1)}aa`)
  const block = await blockOfNode(Object.fromEntries(values.map((value, i) => [`x-${i + 1}`, value])))
  for (const [i, value] of values.entries()) assert.ok(block.includes(huffmanEncode(value)), `octet ${i + 1}`)
  for (let octet = 0; octet < 256; octet++) {
    const text = String.fromCharCode(octet)
    assert.deepEqual(decoded(huffmanEncode(text)), Buffer.from([octet]))
  }
})

/** The field block of a request that node:http2 sends. */
async function blockOfNode(headers: Record<string, string>): Promise<Buffer> {
  const server = net.createServer()
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const session = http2.connect(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
  session.on('error', () => undefined)
  const [socket] = (await once(server, 'connection')) as [net.Socket]
  socket.on('error', () => undefined)
  session.request({ ':path': '/', ...headers }).on('error', () => undefined)
  let received = Buffer.alloc(0)
  try {
    for await (const chunk of socket) {
      received = Buffer.concat([received, chunk as Buffer])
      const block = completeBlock(received)
      if (block !== undefined) return block
    }
    throw new Error('the connection ended before a field block was complete')
  } finally {
    session.destroy()
    socket.destroy()
    server.close()
  }
}

/** HEADERS and its CONTINUATIONs behind the connection preface; undefined while octets are missing. */
function completeBlock(received: Buffer): Buffer | undefined {
  const parts: Buffer[] = []
  for (let at = 24; at + 9 <= received.length; ) {
    const length = received.readUIntBE(at, 3)
    const [type = 0, flags = 0] = received.subarray(at + 3, at + 5)
    at += 9 + length
    if (at > received.length) return undefined
    // node:http2 puts priority data first in a request.
    if (type === HEADERS) parts.push(received.subarray(at - length + (flags & 0x20 ? 5 : 0), at))
    else if (parts.length > 0) parts.push(received.subarray(at - length, at))
    if (parts.length > 0 && (flags & 0x4) !== 0) return Buffer.concat(parts)
  }
  return undefined
}

test('an input ends at the end of a code or in at most 7 ones (RFC 7541 section 5.2)', () => {
  const zero = '00000'
  assert.deepEqual(decoded(fromBits('')), Buffer.from(''))
  assert.deepEqual(decoded(fromBits(`${zero}111`)), Buffer.from('0'))
  assert.equal(decoded(fromBits(`${zero}110`)), undefined, 'padding with a zero')
  assert.equal(decoded(fromBits(`${zero}000`)), undefined, 'padding of zeros')
  assert.equal(decoded(fromBits(`${zero}11111111111`)), undefined, 'padding of 11 bits')
  assert.equal(decoded(fromBits('11111111')), undefined, 'padding of 8 bits')
  assert.deepEqual(decoded(fromBits('11111000')), Buffer.from('&'), 'no padding')
  assert.equal(decoded(fromBits('1111100011111111')), undefined, 'padding of a whole octet')
})

test('EOS in an input is an error', () => {
  const eos = '1'.repeat(30)
  assert.equal(decoded(fromBits(`${eos}11`)), undefined)
  assert.equal(decoded(fromBits(`00000${eos}00000`)), undefined)
})

test('any octets come back from their code', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 300 }), (octets) => {
      const text = Buffer.from(octets).toString('latin1')
      assert.deepEqual(decoded(huffmanEncode(text)), Buffer.from(octets))
    }),
  )
})

test('any input gives the same as a bit-by-bit decoder', () => {
  const mixed = fc.tuple(fc.string({ maxLength: 20 }), fc.uint8Array({ maxLength: 6 }))
  fc.assert(
    fc.property(mixed, ([text, junk]) => {
      const input = Buffer.concat([huffmanEncode(text), junk])
      assert.deepEqual(decoded(input), plainHuffmanDecode(input))
    }),
    { numRuns: 2000 },
  )
})
