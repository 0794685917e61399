import assert from 'node:assert/strict'
import { test } from 'node:test'
import { serverCharge } from '../../kit/core/shares/charge.ts'
import { systemClock } from '../../kit/io/world/clock.ts'
import type { ResourcePages } from '../../kube/io/list.ts'
import { FreshnessProofs } from './freshness.ts'

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
  const freshness = new FreshnessProofs(collection, pages, systemClock)
  return { told, prove: (atOnce = false) => freshness.prove(atOnce) }
}

test('what is known has reached the version of the store', async () => {
  const { prove, told } = scene({ version: 10, current: [10], lines: [] })
  assert.equal(await prove(), '10')
  assert.deepEqual(told, ['probe 10'])
})

test('a bookmark of another watch proves that nothing has happened', async () => {
  const { prove, told } = scene({ version: 10, current: [20], lines: [['BOOKMARK', 21]] })
  assert.equal(await prove(), '21')
  assert.deepEqual(told, ['probe 20', 'watch 10', 'advance 21'])
})

test('a change that the other watch brings has to have arrived', async () => {
  for (const [version, result] of [
    [10, undefined],
    [15, '25'],
  ] as const) {
    const world: World = { version: 10, current: [20], lines: [] }
    const { prove } = scene({
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
    assert.equal(await prove(), result)
  }
})

test('without a bookmark, or after an error, nothing is proved; nor if it has to be at once', async () => {
  for (const lines of [[], [['ADDED', 15]], [['ERROR', 30]], [['BOOKMARK', 19]]] as const) {
    const { prove } = scene({ version: 10, current: [20], lines })
    assert.equal(await prove(), undefined)
  }
  const { prove, told } = scene({ version: 10, current: [20], lines: [['BOOKMARK', 21]] })
  assert.equal(await prove(true), undefined)
  assert.deepEqual(told, ['probe 20'])
})

test('a store that is older than what is known has gone back in time', async () => {
  const { prove, told } = scene({ version: 10, current: [9], lines: [] })
  assert.equal(await prove(), undefined)
  assert.deepEqual(told, ['probe 9', 'went back'])
})

test('questions that come while a proof runs get the next one, all together', async () => {
  const { prove, told } = scene({ version: 10, current: [10, 10], lines: [] })
  assert.deepEqual(await Promise.all([prove(), prove(), prove(), prove()]), ['10', '10', '10', '10'])
  assert.deepEqual(told, ['probe 10', 'probe 10'])
})

test('with a question that may take its time, all that wait get the longer proof', async () => {
  const { prove, told } = scene({ version: 10, current: [20, 20], lines: [['BOOKMARK', 21]] })
  assert.deepEqual(await Promise.all([prove(true), prove(true), prove(false)]), [undefined, '21', '21'])
  assert.deepEqual(told, ['probe 20', 'probe 20', 'watch 10', 'advance 21'])
})
