// The table compared with a Map, over random openings and closings.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { Http2Stream } from './stream.ts'
import { StreamTable } from './stream-table.ts'

function streamOf(id: number): Http2Stream {
  return { id } as Http2Stream
}

test('holds what a Map would hold', () => {
  const step = fc.record({ add: fc.boolean(), id: fc.nat(400) })
  fc.assert(
    fc.property(fc.array(step, { maxLength: 600 }), (steps) => {
      const table = new StreamTable()
      const model = new Map<number, Http2Stream>()
      for (const { add, id: half } of steps) {
        const id = 2 * half + 1
        if (add && !model.has(id)) {
          const stream = streamOf(id)
          table.add(stream)
          model.set(id, stream)
        } else if (!add) assert.equal(table.delete(id), model.delete(id))
        assert.equal(table.size, model.size)
        assert.equal(table.get(id), model.get(id))
      }
      for (let id = 1; id <= 801; id += 2) assert.equal(table.get(id), model.get(id))
      const all = table.all().sort((a, b) => a.id - b.id)
      assert.deepEqual(
        all,
        [...model.values()].sort((a, b) => a.id - b.id),
      )
    }),
  )
})

test('is empty after clear, and grows again', () => {
  const table = new StreamTable()
  for (let id = 1; id < 2000; id += 2) table.add(streamOf(id))
  table.clear()
  assert.deepEqual([table.size, table.all(), table.get(1)], [0, [], undefined])
  table.add(streamOf(5))
  assert.equal(table.get(5)?.id, 5)
})
