import assert from 'node:assert/strict'
import { test } from 'node:test'
import { FanOut } from './fan-out.ts'

class Watch {
  readonly #seen: Watch[]
  constructor(seen: Watch[]) {
    this.#seen = seen
  }
  proceed(): void {
    this.#seen.push(this)
  }
}

/** @returns those that are due, and those that had their turn */
function due(count: number) {
  const fanOut = new FanOut()
  const seen: Watch[] = []
  const watches = Array.from({ length: count }, () => new Watch(seen))
  for (const watch of watches) fanOut.add(watch)
  return { fanOut, seen, watches }
}

test('a change is not for all watches at once: a slice ends when its time is over, and the rest go on in the next one', () => {
  const { fanOut, seen, watches } = due(1000)
  assert.equal(fanOut.work(0), true)
  assert.ok(seen.length > 0 && seen.length < 20, `${seen.length} in a slice without time`)
  for (let slices = 0; fanOut.work(0); slices++) assert.ok(slices < 1000)
  assert.deepEqual(seen, watches, 'each once, in order')
})

test('one that is due again waits once; one that has ended is left out', () => {
  const { fanOut, seen, watches } = due(3)
  const [first, second, third] = watches
  assert.ok(first && second && third)
  fanOut.add(first)
  fanOut.delete(second)
  assert.equal(fanOut.work(Number.POSITIVE_INFINITY), false)
  assert.deepEqual(seen, [first, third])
})

test('the event loop brings them their turn', async () => {
  const { seen } = due(3)
  while (seen.length < 3) await new Promise((resolve) => setImmediate(resolve))
})
