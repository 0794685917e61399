import assert from 'node:assert/strict'
import { test } from 'node:test'
import { addedNoExecute } from './node-taints.ts'

const node = (...taints: unknown[]): object => ({ spec: { taints } })
const A = { key: 'a', effect: 'NoExecute', timeAdded: '2030-01-01T00:00:00Z' }
const B = { key: 'b', value: 'x', effect: 'NoExecute' }

test('what a write adds', () => {
  const rows: readonly [object, object, string | undefined][] = [
    [{}, node(A), 'a'],
    [node(), node(B), 'b=x'],
    [node(A), node({ ...A, timeAdded: undefined }), undefined],
    [node(A), node({ ...A, effect: 'NoSchedule' }), undefined],
    [node({ ...A, effect: 'NoSchedule' }), node(A), 'a'],
    [node(A, B), node(A), undefined],
    [node(A, B), {}, undefined],
    [node(A), node(A, { key: 'c', effect: 'NoSchedule' }), undefined],
    // A toleration may be limited to one value.
    [node(B), node({ ...B, value: 'y' }), 'b=y'],
    [{ spec: 7 }, { spec: { taints: [7, null, A] } }, 'a'],
  ]
  for (const [before, after, expected] of rows)
    assert.equal(addedNoExecute({ ...before }, { ...after }), expected, JSON.stringify([before, after]))
})
