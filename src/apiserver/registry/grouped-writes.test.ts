import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { TaskResult } from '../api/object-store.ts'
import { GroupedWrites } from './grouped-writes.ts'

/** Runs the groups it is given, and records their sizes. */
function storeOf(fails = false) {
  const groups: number[] = []
  const together = <T>(tasks: Iterable<() => T>): readonly TaskResult<T>[] => {
    const results: TaskResult<T>[] = []
    for (const task of tasks) {
      try {
        const value = task()
        results.push(fails ? { error: new Error('the disk is full') } : { value })
      } catch (error) {
        results.push({ error })
      }
    }
    groups.push(results.length)
    return results
  }
  return { groups, together }
}

test('the writes of one turn go to disk together, in order; each has its own result', async (t) => {
  // Keeps the slice from ending, however busy the machine is.
  t.mock.method(performance, 'now', () => 0)
  const store = storeOf()
  const writes = new GroupedWrites(store)
  const order: number[] = []
  const asked = [1, 2, 3].map((n) =>
    writes.add(() => {
      order.push(n)
      if (n === 2) throw new Error('conflict')
      return n
    }),
  )
  assert.deepEqual(order, [])
  const results = await Promise.allSettled(asked)
  assert.deepEqual(
    results.map((result) => (result.status === 'fulfilled' ? result.value : result.reason.message)),
    [1, 'conflict', 3],
  )
  assert.deepEqual([order, store.groups], [[1, 2, 3], [3]])
  assert.equal(await writes.add(() => 4), 4)
  assert.deepEqual(store.groups, [3, 1])
})

test('when the disk fails, no write succeeds', async () => {
  const writes = new GroupedWrites(storeOf(true))
  const results = await Promise.allSettled([writes.add(() => 1), writes.add(() => 2)])
  assert.deepEqual(
    results.map(({ status }) => status),
    ['rejected', 'rejected'],
  )
})

test('many writes go in several groups, and the event loop runs in between', async () => {
  const store = storeOf()
  const writes = new GroupedWrites(store)
  const seen: string[] = []
  const busy = (name: string): Promise<void> =>
    writes.add(() => {
      const untilMs = performance.now() + 11
      while (performance.now() < untilMs);
      seen.push(name)
    })
  const first = busy('a')
  const second = busy('b')
  setImmediate(() => seen.push('others'))
  await Promise.all([first, second])
  assert.deepEqual(
    [seen, store.groups],
    [
      ['a', 'others', 'b'],
      [1, 1],
    ],
  )
})

test('a group that cannot begin fails what waits, and the next one may begin', async () => {
  let broken = true
  const begin = (): void => {
    if (broken) throw new Error('the store cannot be read')
  }
  const writes = new GroupedWrites(storeOf(), { begin, isOver: () => false })
  const results = await Promise.allSettled([writes.add(() => 1), writes.add(() => 2)])
  assert.deepEqual(
    results.map((result) => result.status === 'rejected' && result.reason.message),
    ['the store cannot be read', 'the store cannot be read'],
  )
  broken = false
  assert.equal(await writes.add(() => 3), 3)
})

test('a group ends when its limits say so, and the rest is written in the next one', async (t) => {
  t.mock.method(performance, 'now', () => 0)
  const store = storeOf()
  let last = 0
  const writes = new GroupedWrites(store, { begin: () => undefined, isOver: () => last === 2 })
  await Promise.all(
    [1, 2, 3, 4].map((n) =>
      writes.add(() => {
        last = n
      }),
    ),
  )
  assert.deepEqual(store.groups, [2, 2])
})
