import assert from 'node:assert/strict'
import { test } from 'node:test'
import { UnreadableBody } from '../../../gateway/core/request/write-envelope.ts'
import { writtenQuery } from './written-query.ts'

const changes = {
  resourceVersion: (shown: string) => (shown === '' ? '' : `rv ${shown}`),
  fieldSelector: (shown: string) => `fields ${shown}`,
}

for (const [before, after] of [
  ['dryRun=All&dryRun=All&fieldManager=a%20b&&x', 'dryRun=All&dryRun=All&fieldManager=a%20b&&x'],
  ['resourceVersion=7&uid=u', 'resourceVersion=rv%207&uid=u'],
  ['resource%56ersion=%37', 'resourceVersion=rv%207'],
  ['resourceVersion=', 'resourceVersion='],
  ['fieldSelector=a%3Db&labelSelector=a%3Db', 'fieldSelector=fields%20a%3Db&labelSelector=a%3Db'],
  // Go does not read these.
  ['resourceVersion=%zz&resourceVersion=7;x=1', 'resourceVersion=%zz&resourceVersion=7;x=1'],
  ['ResourceVersion=7&limit=5', 'ResourceVersion=7&limit=5'],
] as const)
  test(before, () => {
    assert.equal(writtenQuery(before, false, changes), after)
  })

test('what is there twice, and pages of what is deleted, are refused', () => {
  assert.throws(() => writtenQuery('resourceVersion=7&x&resource%56ersion=8', false, changes), UnreadableBody)
  assert.throws(() => writtenQuery('fieldSelector=a&fieldSelector=', true, changes), UnreadableBody)
  for (const query of ['continue=x', 'limit=5', 'resourceVersionMatch=Exact'])
    assert.throws(() => writtenQuery(query, true, changes), UnreadableBody)
  assert.equal(writtenQuery('continue=&limit=', true, changes), 'continue=&limit=')
})
