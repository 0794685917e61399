import assert from 'node:assert/strict'
import { EventEmitter } from 'node:events'
import { test } from 'node:test'
import { SourceConnections } from './source-connections.ts'

test('each address has so many connections at a time', () => {
  const sources = new SourceConnections(2)
  const open = (address: string): EventEmitter | undefined => {
    const socket = new EventEmitter()
    return sources.admit(socket, address) ? socket : undefined
  }
  const first = open('192.0.2.1')
  assert.ok(first !== undefined && open('::ffff:192.0.2.1') !== undefined)
  assert.equal(open('192.0.2.1'), undefined)
  assert.ok(open('192.0.2.2') !== undefined)
  first.emit('close')
  assert.ok(open('192.0.2.1') !== undefined)
  assert.equal(open('192.0.2.1'), undefined, 'the one that was refused did not count, and did not free a place')
  assert.ok(open('2001:db8::1') !== undefined && open('2001:db8::2') !== undefined)
  assert.equal(open('2001:db8::3'), undefined, 'a network of 64 bits is one host')
  assert.ok(open('2001:db8:0:1::1') !== undefined)
})

test('0 means no limit', () => {
  const sources = new SourceConnections(0)
  for (let i = 0; i < 1_000; i++) assert.ok(sources.admit(new EventEmitter(), '192.0.2.1'))
})
