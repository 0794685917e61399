import assert from 'node:assert/strict'
import { test } from 'node:test'
import { formatListenAddress, parseListenAddress, parseSocketAddress } from './listen-address.ts'

test('addresses read and write back', () => {
  for (const text of [
    '127.0.0.1:8443',
    '[::1]:0',
    '[::]:65535',
    'localhost:1',
    'gw.example.com:443',
    '[fe80::1%eth0]:80',
  ]) {
    const address = parseListenAddress(text)
    assert.ok(!('error' in address), text)
    assert.equal(formatListenAddress(address), text)
  }
})

test('an invalid address says why', () => {
  const table: [string, RegExp][] = [
    ['localhost', /no port/],
    ['localhost:', /port/],
    ['localhost:http', /port/],
    ['localhost:65536', /port/],
    ['localhost:-1', /port/],
    [':8443', /no host/],
    ['::1:8443', /brackets/],
    ['[x]:1', /brackets|neither/],
    ['a b:1', /neither/],
    ['https://h:1', /brackets|neither/],
  ]
  for (const [text, why] of table) {
    const address = parseListenAddress(text)
    assert.ok('error' in address, text)
    assert.match(address.error, why, text)
  }
})

test('inherited sockets read and write back; anything else is an address', () => {
  for (const text of ['systemd:https', 'systemd:portcullis.socket', 'systemd:a-b_c@1', 'fd:3', 'fd:65535', '[::1]:0']) {
    const address = parseSocketAddress(text)
    assert.ok(!('error' in address), text)
    assert.equal(formatListenAddress(address), text)
  }
  for (const text of [
    'fd:0',
    'fd:2',
    'fd:65536',
    'fd:',
    'fd:x',
    'fd://3',
    'systemd:',
    'systemd:a b',
    'systemd:a:b',
    'systemd:a/b',
  ]) {
    assert.ok('error' in parseSocketAddress(text), text)
  }
  // Ports that can't be inherited.
  assert.ok('error' in parseListenAddress('systemd:https'))
})
