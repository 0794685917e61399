import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { type Unread, UnreadOutput } from './unread-output.ts'

const KIB = 1024
const MAX = 1024 * KIB

interface Held extends Unread {
  ended: boolean
}

function held(source: string, kib: number): Held {
  const connection: Held = {
    ended: false,
    source: () => source,
    bytes: () => kib * KIB,
    end: () => {
      connection.ended = true
    },
  }
  return connection
}

function looked(connections: readonly Held[]): readonly Held[] {
  const output = new UnreadOutput(MAX)
  for (const connection of connections) output.add(connection)
  output.tick()
  for (const connection of connections) output.delete(connection)
  return connections.filter(({ ended }) => ended)
}

test('no connection is ended while all is within the bound', () => {
  assert.deepEqual(looked(Array.from({ length: 100 }, (_, i) => held(`address ${i}`, 192 + 10))), [])
})

test('the source with the most loses its largest connections, others keep theirs', () => {
  const many = Array.from({ length: 50 }, (_, i) => held('address 1', 228 + i))
  const others = [held('address 2', 428), held('address 3', 192)]
  const ended = looked([...others, ...many])
  assert.ok(ended.length > 0 && ended.every((one) => one.source() === 'address 1'))
  const kept = many.filter((one) => !one.ended)
  for (const one of kept) for (const gone of ended) assert.ok(one.bytes() <= gone.bytes())
})

test('what is left is within the bound, and who has less than others lose keeps all', () => {
  const connections = fc.array(fc.tuple(fc.integer({ min: 0, max: 9 }), fc.integer({ min: 0, max: 4096 })), {
    maxLength: 60,
  })
  fc.assert(
    fc.property(connections, (rows) => {
      const all = rows.map(([source, kib]) => held(`address ${source}`, kib))
      const ended = looked(all)
      const over = (some: readonly Held[]) => some.reduce((sum, one) => sum + Math.max(0, one.bytes() - 192 * KIB), 0)
      const left = all.filter((one) => !one.ended)
      assert.ok(over(left) <= MAX)
      if (over(all) <= MAX) assert.equal(ended.length, 0)
      const of = (source: string) => over(all.filter((one) => one.source() === source))
      const losers = new Set(ended.map((one) => one.source()))
      for (const one of left) {
        if (losers.has(one.source())) continue
        for (const loser of losers) assert.ok(of(one.source()) <= of(loser))
      }
    }),
  )
})
