import assert from 'node:assert/strict'
import { test } from 'node:test'
import { decideProtector, type ProtectorState, type SourceState, type Wanted } from './decision.ts'

const LIVE: SourceState = { terminating: false, finalizer: false }
const HELD: SourceState = { terminating: false, finalizer: true }
const DYING: SourceState = { terminating: true, finalizer: false }
const DYING_HELD: SourceState = { terminating: true, finalizer: true }
const P: ProtectorState = { name: 'p', terminating: false, finalizer: true, drifted: false, removesCells: false }
const DRIFTED: ProtectorState = { ...P, drifted: true }
const BARE: ProtectorState = { ...P, finalizer: false }
const GOING: ProtectorState = { ...P, terminating: true }

/** Source, what it should have, protector; actions, findings, fault. */
const TABLE: readonly (readonly [
  SourceState | undefined,
  Wanted,
  ProtectorState | undefined,
  string,
  string,
  string?,
])[] = [
  [undefined, 'none', undefined, '', ''],
  [undefined, 'none', P, '', 'Dangling'],
  [undefined, 'none', GOING, '', 'Finalizing'],
  [HELD, 'none', undefined, 'RemoveSourceFinalizer', 'CleanSourceFinalizer'],
  [DYING_HELD, 'none', undefined, 'RemoveSourceFinalizer', 'CleanSourceFinalizer'],
  [LIVE, 'none', undefined, '', ''],
  [HELD, 'none', P, 'RemoveProtectorFinalizer DeleteProtector RemoveSourceFinalizer', 'Delete CleanSourceFinalizer'],
  [LIVE, 'none', P, 'RemoveProtectorFinalizer DeleteProtector', 'Delete'],
  [HELD, 'none', BARE, 'DeleteProtector RemoveSourceFinalizer', 'Delete CleanSourceFinalizer'],
  [DYING_HELD, 'none', GOING, 'RemoveProtectorFinalizer RemoveSourceFinalizer', 'Delete CleanSourceFinalizer'],
  [HELD, 'none', { ...BARE, terminating: true }, 'RemoveSourceFinalizer', 'Delete CleanSourceFinalizer'],
  [LIVE, 'protector', undefined, 'AddSourceFinalizer CreateProtector', 'Create'],
  [HELD, 'protector', undefined, 'CreateProtector', 'Create'],
  [DYING, 'protector', undefined, '', 'Create'],
  [DYING_HELD, 'protector', undefined, 'CreateProtector', 'Create'],
  [LIVE, 'protector', P, 'AddSourceFinalizer', 'Sync'],
  [HELD, 'protector', P, '', 'Sync'],
  [HELD, 'protector', DRIFTED, 'RepairProtector', 'Sync'],
  [LIVE, 'protector', DRIFTED, 'AddSourceFinalizer RepairProtector', 'Sync'],
  [HELD, 'protector', { ...GOING, drifted: true }, 'RepairProtector', 'Sync'],
  [DYING_HELD, 'protector', P, '', 'Sync'],
  [DYING, 'protector', P, '', 'Sync', 'NoFinalizerInTerminatingSource'],
  [DYING, 'protector', DRIFTED, 'RepairProtector', 'Sync', 'NoFinalizerInTerminatingSource'],
  [HELD, 'unclear', DRIFTED, '', '', 'Unclear'],
  [LIVE, 'unclear', undefined, '', '', 'Unclear'],
  // Explicit requests are carried out with or without a source.
  [HELD, 'protector', { ...DRIFTED, removesCells: true }, 'RemoveCells RepairProtector', 'Sync'],
  [undefined, 'none', { ...P, removesCells: true }, 'RemoveCells', 'Dangling'],
]

test('the table of the generator', () => {
  for (const [source, wanted, protector, actions, findings, fault = ''] of TABLE) {
    const decision = decideProtector(source, wanted, protector)
    assert.deepEqual(
      [decision.actions.map(({ type }) => type).join(' '), decision.findings.join(' '), decision.fault],
      [actions, findings, fault],
      JSON.stringify({ source, wanted, protector }),
    )
  }
})

test('protectors of other names go once the right one is there, and never without their source', () => {
  const other = { ...P, name: 'old' }
  assert.deepEqual(decideProtector(LIVE, 'protector', undefined, [other]).actions, [
    { type: 'AddSourceFinalizer' },
    { type: 'CreateProtector' },
    { type: 'RemoveProtectorFinalizer', name: 'old' },
    { type: 'DeleteProtector', name: 'old' },
  ])
  assert.deepEqual(decideProtector(HELD, 'none', P, [other]).findings, ['Delete', 'Delete', 'CleanSourceFinalizer'])
  assert.deepEqual(decideProtector(undefined, 'none', undefined, [other]), {
    actions: [],
    findings: ['Dangling'],
    fault: '',
  })
  assert.deepEqual(decideProtector(HELD, 'unclear', undefined, [other]).actions, [])
})
