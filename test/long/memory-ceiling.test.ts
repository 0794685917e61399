// Two minutes of all attacks of the corpus at once, with one gateway thread and with two, in a control group of the computed size.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { noControlGroup } from '../memory/control-group.ts'
import { attackWithin } from '../memory/under-attack.ts'

const GIB = 1024 ** 3

for (const threads of [1, 2]) {
  test(`all attacks at once within the ceiling, ${threads} gateway thread(s) (long)`, {
    skip: noControlGroup() || false,
  }, async (t) => {
    // What a process and its first thread take, and 0.4 GiB for each further one (docs/memory.md).
    const limitBytes = Math.round((0.9 + 0.4 * threads) * GIB)
    const outcome = await attackWithin({ threads, limitBytes, forMs: 120_000 })
    t.diagnostic(JSON.stringify(outcome))
    const { ceilingBytes, residentBytes, killed, running, bystander, restarts } = outcome
    assert.ok(ceilingBytes > 0 && ceilingBytes <= limitBytes)
    assert.deepEqual({ killed, running, restarts }, { killed: 0, running: true, restarts: 0 })
    assert.ok(residentBytes < ceilingBytes)
    assert.ok(bystander.answered > bystander.failed)
    assert.equal(bystander.inTheEnd, 200)
  })
}
