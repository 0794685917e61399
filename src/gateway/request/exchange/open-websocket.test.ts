import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { readHandshake } from './open-websocket.ts'

const GOOD = ['sec-websocket-key', 'k', 'sec-websocket-version', '13', 'origin', 'https://a.example.com']

function read(...fields: string[]): string {
  const found = readHandshake([...fields, ...GOOD])
  return 'refused' in found ? found.refused : `${found.key} ${found.protocol}`
}

test('what kube-apiserver takes is taken', () => {
  assert.equal(read(), 'k ')
  assert.equal(read('sec-websocket-protocol', ' binary.k8s.io '), 'k binary.k8s.io')
  for (const origin of ['http://localhost:4466', 'HTTPS://A', 'file://', 'chrome-extension://x', '/path', 'x:'])
    assert.equal(read('origin', origin), 'k ', origin)
})

test('what it refuses is refused', () => {
  for (const origin of ['', 'null', 'example.com', ' ', ':x', '1x:'])
    assert.equal(read('origin', origin), 'websocket-origin', origin)
  for (const version of ['', '12', '013', '13, 8', '8'])
    assert.equal(read('sec-websocket-version', version), 'bad-request')
  assert.equal(read('sec-websocket-key', ''), 'bad-request')
  for (const protocols of ['a,b', 'a,', ',', 'a, b'])
    assert.equal(read('sec-websocket-protocol', protocols), 'bad-request', protocols)
})

test('any fields are read', () => {
  const name = fc.constantFrom('sec-websocket-key', 'sec-websocket-version', 'origin', 'sec-websocket-protocol', 'host')
  fc.assert(
    fc.property(fc.array(fc.tuple(name, fc.string())), (fields) => {
      const found = readHandshake(fields.flat())
      if (!('refused' in found)) assert.ok(found.key !== '' && !found.protocol.includes(','))
    }),
  )
})
