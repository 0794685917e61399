import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { JsonObject } from '../../kit/api/json/json-object.ts'
import { SCALE_DOWN_POLICIES } from './scale-down-policy-kind.ts'

function cellsOf(object: JsonObject): Record<string, unknown> {
  const cells = SCALE_DOWN_POLICIES.columns.flatMap(({ name, cell }) =>
    cell === undefined ? [] : [[name, cell(object)]],
  )
  return Object.fromEntries(cells)
}

test('a ScaleDownPolicy shows all that decides, in its order', () => {
  const prefer = [{ by: 'UnschedulableNode' }, { by: 'EmptiestNode' }]
  assert.deepEqual(cellsOf({ spec: { prefer } }), { Prefer: 'UnschedulableNode,EmptiestNode' })
  assert.deepEqual(cellsOf({}), { Prefer: '' })
})
