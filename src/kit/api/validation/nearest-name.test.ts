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

test('a long name, or thousands of candidates, cost no more than a few comparisons', () => {
  let looked = 0
  function* candidates(length: number): Iterable<string> {
    for (let at = 0; ; at++) {
      looked++
      // Distinct texts of equal length, so that length alone rules none out.
      yield `${String(at).padStart(8, '0')}${'x'.repeat(length - 8)}`
    }
  }
  assert.equal(nearestName('y'.repeat(64), candidates(64)), '')
  assert.equal(looked, 0, 'a name that is longer than any of Kubernetes')
  assert.equal(nearestName('y'.repeat(63), candidates(63)), '')
  assert.ok(looked <= 101, `${looked} candidates of the same length`)
  looked = 0
  assert.equal(nearestName('y'.repeat(63), candidates(20)), '')
  assert.ok(looked <= 1001, `${looked} candidates of another length`)
})
