import assert from 'node:assert/strict'
import { test } from 'node:test'
import { serverCharge } from '../../kit/core/shares/charge.ts'
import { systemClock } from '../../kit/io/world/clock.ts'
import type { ResourcePages } from '../../kube/io/list.ts'
import { FreshnessProofs } from './freshness.ts'

const ID = { cluster: 'c', group: '', version: 'v1', resource: 'pods', namespace: '' }

interface World {
  /** What is known. */
  version: number
  /** Version of the store; each probe takes the next. */
  readonly current: number[]
  /** What a side watch brings. */
  readonly lines: readonly (readonly [type: string, version: number])[]
}

function scene(world: World) {
  const told: string[] = []
  const answers: string[] = []
  const pages: ResourcePages = {
    charge: serverCharge('https://127.0.0.1'),
    page: async () => {
      const version = world.current.shift()
      told.push(`probe ${version}`)
      return { metadata: { resourceVersion: String(version) } }
    },
    watch: async ({ resourceVersion }) => {
      told.push(`watch ${resourceVersion}`)
      return (async function* () {
        for (const [type, version] of world.lines)
          yield Buffer.from(`${JSON.stringify({ type, object: { metadata: { resourceVersion: String(version) } } })}\n`)
      })()
    },
  }
  const collection = {
    get version() {
      return String(world.version)
    },
    reaches: async (version: string) => world.version >= Number(version),
    advance: (version: string) => {
      told.push(`advance ${version}`)
      world.version = Math.max(world.version, Number(version))
    },
    wentBack: () => void told.push('went back'),
  }
  let answered = 0
  const { promise, resolve } = Promise.withResolvers<void>()
  let wanted = 1
  const freshness = new FreshnessProofs(collection, pages, systemClock, ({ asker, asked, resourceVersion }) => {
    answers.push(`${asker}/${asked} ${resourceVersion}`)
    if (++answered === wanted) resolve()
  })
  const ask = (asker: number, asked: number, atOnce = false): void =>
    freshness.ask({ collection: ID, asker, asked, atOnce })
  return {
    told,
    answers,
    ask,
    all: (count: number) => {
      wanted = count
      return promise
    },
  }
}

test('what is known has reached the version of the store', async () => {
  const { ask, all, told, answers } = scene({ version: 10, current: [10], lines: [] })
  ask(1, 1)
  await all(1)
  assert.deepEqual([told, answers], [['probe 10'], ['1/1 10']])
})

test('a bookmark of another watch proves that nothing has happened', async () => {
  const { ask, all, told, answers } = scene({ version: 10, current: [20], lines: [['BOOKMARK', 21]] })
  ask(1, 1)
  await all(1)
  assert.deepEqual([told, answers], [['probe 20', 'watch 10', 'advance 21'], ['1/1 21']])
})

test('a change that the other watch brings has to have arrived', async () => {
  for (const [version, result] of [
    [10, '1/1 undefined'],
    [15, '1/1 25'],
  ] as const) {
    const world: World = { version: 10, current: [20], lines: [] }
    const { ask, all, answers } = scene({
      ...world,
      get lines() {
        // Meanwhile.
        this.version = version
        return [
          ['ADDED', 15],
          ['BOOKMARK', 25],
        ] as const
      },
    })
    ask(1, 1)
    await all(1)
    assert.deepEqual(answers, [result])
  }
})

test('without a bookmark, or after an error, nothing is proved; nor if it has to be at once', async () => {
  for (const lines of [[], [['ADDED', 15]], [['ERROR', 30]], [['BOOKMARK', 19]]] as const) {
    const { ask, all, answers } = scene({ version: 10, current: [20], lines })
    ask(1, 1)
    await all(1)
    assert.deepEqual(answers, ['1/1 undefined'])
  }
  const { ask, all, told } = scene({ version: 10, current: [20], lines: [['BOOKMARK', 21]] })
  ask(1, 1, true)
  await all(1)
  assert.deepEqual(told, ['probe 20'])
})

test('a store that is older than what is known has gone back in time', async () => {
  const { ask, all, told, answers } = scene({ version: 10, current: [9], lines: [] })
  ask(1, 1)
  await all(1)
  assert.deepEqual([told, answers], [['probe 9', 'went back'], ['1/1 undefined']])
})

test('questions that come while a proof runs get the next one, all together', async () => {
  const { ask, all, told, answers } = scene({ version: 10, current: [10, 10], lines: [] })
  ask(1, 1)
  ask(1, 2)
  ask(2, 1)
  ask(1, 3)
  await all(3)
  assert.deepEqual(told, ['probe 10', 'probe 10'])
  assert.deepEqual(answers, ['1/1 10', '1/3 10', '2/1 10'])
})
