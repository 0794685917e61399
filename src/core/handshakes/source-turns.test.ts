import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { SourceTurns } from './source-turns.ts'

function takeAll(turns: SourceTurns<string>): string[] {
  const taken: string[] = []
  for (let item = turns.next(); item !== undefined; item = turns.next()) taken.push(item)
  return taken
}

test('sources take turns, each with its oldest', () => {
  const turns = new SourceTurns<string>()
  for (const item of ['a1', 'a2', 'a3', 'b1', 'c1', 'b2']) turns.add(item.charAt(0), item)
  assert.equal(turns.size, 6)
  assert.deepEqual(takeAll(turns), ['a1', 'b1', 'c1', 'a2', 'b2', 'a3'])
  assert.equal(turns.size, 0)
})

test('who comes while another has a thousand is the next but one', () => {
  const turns = new SourceTurns<string>()
  for (let i = 0; i < 1000; i++) turns.add('a', `a${i}`)
  turns.next()
  turns.add('b', 'b1')
  assert.deepEqual([turns.next(), turns.next(), turns.next()], ['a1', 'b1', 'a2'])
})

test('what is deleted is not taken; deleting it again does nothing', () => {
  const turns = new SourceTurns<string>()
  for (const item of ['a1', 'a2', 'b1']) turns.add(item.charAt(0), item)
  turns.delete('a', 'a1')
  turns.delete('a', 'a1')
  turns.delete('b', 'b1')
  turns.delete('c', 'c1')
  assert.equal(turns.size, 1)
  assert.deepEqual(takeAll(turns), ['a2'])
})

test('whoever waits is taken after at most as many others as there are sources, for each of its own before it', () => {
  fc.assert(
    fc.property(fc.array(fc.constantFrom('a', 'b', 'c', 'd'), { maxLength: 60 }), (sources) => {
      const turns = new SourceTurns<string>()
      sources.forEach((source, i) => void turns.add(source, `${source}${i}`))
      const taken = takeAll(turns)
      assert.equal(taken.length, sources.length)
      for (const source of new Set(sources)) {
        const places = taken.flatMap((item, place) => (item.startsWith(source) ? [place] : []))
        places.forEach((place, nth) => void assert.ok(place < (nth + 1) * new Set(sources).size))
      }
    }),
  )
})
