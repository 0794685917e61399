// Which switch wins when the API server is back: a table, and independence from the order of replicas.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { DEGRADE_MODES, type DegradeMode } from '../../../gateway/api/upstream-cluster/degrade-modes.ts'
import type { JsonObject } from '../../../kit/api/json/json-object.ts'
import { readDegrade, type Switch, settleSwitch } from './settle-switch.ts'

const NOW = Date.parse('2030-01-31T12:00:00Z')
const BASE: { uid: string; degrade: unknown } = { uid: 'u', degrade: { mode: 'Off', exempt: [] } }

function local(mode: DegradeMode, more: Partial<Switch> = {}): Switch {
  return { mode, reason: 'INC-1', expiresAt: '', shadow: false, ...more }
}

function object(degrade: JsonObject, uid = 'u'): JsonObject {
  return { metadata: { name: 'prod', uid }, spec: { degrade } }
}

test('unchanged objects take it, whatever it is; of two changes the stricter wins', () => {
  const past = '2030-01-31T11:00:00Z'
  const table: [string, Switch, typeof BASE | undefined, JsonObject, string][] = [
    ['unchanged', local('Freeze'), BASE, object({ mode: 'Off', exempt: [] }), 'write'],
    [
      'unchanged, and lifted here',
      local('Off'),
      { uid: 'u', degrade: { mode: 'Freeze' } },
      object({ mode: 'Freeze' }),
      'write',
    ],
    [
      'never set, and still not',
      local('ReadOnly'),
      { uid: 'u', degrade: {} },
      { metadata: { uid: 'u' }, spec: {} },
      'write',
    ],
    ['written by another replica', local('Freeze'), BASE, object({ mode: 'Freeze', reason: 'INC-1' }), 'same'],
    ['changed to a milder one', local('Freeze'), BASE, object({ mode: 'ReadOnly', reason: 'x' }), 'write'],
    ['changed to a stricter one', local('ReadOnly'), BASE, object({ mode: 'Freeze', reason: 'x' }), 'yield'],
    [
      'changed to the same mode, for another reason',
      local('Freeze'),
      BASE,
      object({ mode: 'Freeze', reason: 'x' }),
      'yield',
    ],
    ['changed to one that is over', local('ReadOnly'), BASE, object({ mode: 'Freeze', expiresAt: past }), 'write'],
    ['changed to one in shadow', local('ReadOnly'), BASE, object({ mode: 'Freeze', shadow: true }), 'write'],
    ['over by now', local('Freeze', { expiresAt: past }), BASE, object({ mode: 'Limited', reason: 'x' }), 'yield'],
    ['in shadow', local('Freeze', { shadow: true }), BASE, object({ mode: 'Limited', reason: 'x' }), 'yield'],
    ['another object of this name', local('ReadOnly'), BASE, object({ mode: 'Off', exempt: [] }, 'v'), 'write'],
    ['another object of this name, frozen', local('ReadOnly'), BASE, object({ mode: 'Freeze' }, 'v'), 'yield'],
    ['it is not known what it was', local('Off'), undefined, object({ mode: 'Freeze' }), 'yield'],
  ]
  for (const [what, thrown, base, now, kind] of table)
    assert.equal(settleSwitch(thrown, base, now, NOW).kind, kind, what)
})

test('whichever of several replicas comes first: the strictest mode that was set is in the object at the end', () => {
  const mode = fc.constantFrom(...DEGRADE_MODES)
  fc.assert(
    fc.property(fc.uniqueArray(mode, { minLength: 1 }), fc.func(fc.nat()), (modes, rank) => {
      const order = [...modes].sort((a, b) => rank(a) - rank(b))
      let degrade: JsonObject = { mode: 'Off' }
      for (const one of order) {
        const { kind } = settleSwitch(
          local(one, { reason: one }),
          { uid: 'u', degrade: { mode: 'Off' } },
          object(degrade),
          NOW,
        )
        if (kind === 'write') degrade = { mode: one, reason: one }
      }
      const strictest = Math.max(...modes.map((one) => DEGRADE_MODES.indexOf(one)))
      assert.equal(readDegrade(degrade).mode, DEGRADE_MODES[strictest])
    }),
  )
})
