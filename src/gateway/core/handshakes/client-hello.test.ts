import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { type ClientHello, ClientHelloReader, MAX_CLIENT_HELLO_BYTES } from './client-hello.ts'

/** A ClientHello with a body of `length` octets, split into records of at most `perRecord`. */
function clientHello(length: number, perRecord = 16_384, type = 1): Buffer {
  const message = Buffer.alloc(4 + length)
  message.writeUInt32BE((type << 24) | length)
  const records: Buffer[] = []
  for (let at = 0; at < message.length; at += perRecord) {
    const part = message.subarray(at, at + perRecord)
    records.push(Buffer.from([22, 3, 1, part.length >> 8, part.length & 255]), part)
  }
  return Buffer.concat(records)
}

function readAll(bytes: Uint8Array, cuts: readonly number[] = []): ClientHello {
  const reader = new ClientHelloReader()
  let result: ClientHello = 'incomplete'
  const ends = [...cuts.filter((cut) => cut < bytes.length).sort((a, b) => a - b), bytes.length]
  let from = 0
  for (const end of ends) {
    result = reader.read(bytes.subarray(from, end))
    from = end
  }
  return result
}

describe('a ClientHello', () => {
  const cases: readonly (readonly [string, Buffer, ClientHello])[] = [
    ['is complete', clientHello(300), 'complete'],
    ['lacks its last octet', clientHello(300).subarray(0, -1), 'incomplete'],
    ['is cut into records of one octet', clientHello(40, 1), 'complete'],
    ['is cut into records, of which the last has not come', clientHello(40, 10).subarray(0, 50), 'incomplete'],
    ['has something behind it in its record', Buffer.concat([clientHello(10), Buffer.from([22, 3, 1])]), 'complete'],
    ['is plain HTTP', Buffer.from('GET / HTTP/1.1\r\n\r\n'), 'invalid'],
    ['is an alert', Buffer.from([21, 3, 1, 0, 2, 2, 40]), 'invalid'],
    ['is another message', clientHello(300, 16_384, 2), 'invalid'],
    ['is of SSL 2', Buffer.from([0x80, 0x2e, 1, 3, 1]), 'invalid'],
    ['is an empty record', Buffer.from([22, 3, 1, 0, 0]), 'invalid'],
    ['announces too much', clientHello(MAX_CLIENT_HELLO_BYTES).subarray(0, 20), 'too-large'],
    ['announces a record that is too large', Buffer.from([22, 3, 1, 0xff, 0xff]), 'too-large'],
    ['is nothing yet', Buffer.alloc(0), 'incomplete'],
  ]
  for (const [name, bytes, expected] of cases) {
    test(`${name}: ${expected}`, () => {
      assert.equal(readAll(bytes), expected)
      assert.equal(readAll(bytes, Array.from(bytes.keys())), expected, 'octet by octet')
    })
  }

  test('however it is cut, it is complete with its last octet and not before', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 0, max: 3000 }),
        fc.integer({ min: 4, max: 700 }),
        fc.array(fc.integer({ min: 0, max: 4000 }), { maxLength: 12 }),
        (length, perRecord, cuts) => {
          const bytes = clientHello(length, perRecord)
          assert.equal(readAll(bytes.subarray(0, -1), cuts), 'incomplete')
          assert.equal(readAll(bytes, cuts), 'complete')
        },
      ),
    )
  })

  test('records that never complete a message end at the limit', () => {
    const reader = new ClientHelloReader()
    const one = Buffer.from([22, 3, 1, 0, 1, 0])
    assert.equal(reader.read(Buffer.from([22, 3, 1, 0, 4, 1, 0, 0x30, 0])), 'incomplete')
    let result: ClientHello = 'incomplete'
    let read = 0
    while (result === 'incomplete' && read < 10 * MAX_CLIENT_HELLO_BYTES) {
      result = reader.read(one)
      read += one.length
    }
    assert.equal(result, 'too-large')
    assert.ok(read <= MAX_CLIENT_HELLO_BYTES)
  })
})
