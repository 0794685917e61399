import assert from 'node:assert/strict'
import { test } from 'node:test'
import { nearestName } from './nearest-name.ts'

const KNOWN = ['listen', 'adminListen', 'configDir', 'drainTimeout']

test('a slip of the finger finds its name', () => {
  assert.equal(nearestName('listne', KNOWN), 'listen')
  assert.equal(nearestName('configdir', KNOWN), 'configDir')
  assert.equal(nearestName('config-dir', KNOWN), 'configDir')
  assert.equal(nearestName('drainTimeouts', KNOWN), 'drainTimeout')
})

test('something else finds nothing', () => {
  assert.equal(nearestName('colour', KNOWN), '')
  assert.equal(nearestName('', KNOWN), '')
  assert.equal(nearestName('x', []), '')
})
