// The gateway lives in a control group of exactly the size that it says it needs, while all attacks of the corpus run at once.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { PATIENT } from '../harness/patience.ts'
import { noControlGroup } from './control-group.ts'
import { attackWithin } from './under-attack.ts'

const GIB = 1024 ** 3

test('in a control group of its ceiling it lives through all attacks at once', {
  skip: noControlGroup() || false,
  ...PATIENT,
}, async (t) => {
  const outcome = await attackWithin({ threads: 1, limitBytes: 1.25 * GIB, forMs: 8_000 })
  t.diagnostic(JSON.stringify(outcome))
  const { ceilingBytes, residentBytes, killed, running, bystander, restarts } = outcome
  assert.ok(ceilingBytes > 0 && ceilingBytes <= 1.25 * GIB)
  assert.deepEqual({ killed, running, restarts }, { killed: 0, running: true, restarts: 0 })
  assert.ok(residentBytes < ceilingBytes)
  assert.ok(bystander.answered > bystander.failed)
  assert.equal(bystander.inTheEnd, 200)
})
