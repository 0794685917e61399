import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { serverCharge } from '../../kit/core/shares/charge.ts'
import { systemClock } from '../../kit/io/world/clock.ts'
import { AnswerTooLargeError } from '../../kube/core/answers/call-errors.ts'
import type { ResourcePages } from '../../kube/io/list.ts'
import { SMALL_BYTES } from '../core/changes/collection.ts'
import type { ListedObject } from '../core/changes/listed-object.ts'
import { FreshnessProofs } from './freshness.ts'

interface World {
  /** What is known. */
  version: number
  /** Version of the store; each probe takes the next. */
  readonly current: number[]
  /** What a side watch brings. */
  readonly lines: readonly (readonly [type: string, version: number])[]
  /** Names of the objects that are known. A list of the cluster's has `a` and `b`. */
  readonly objects?: readonly string[]
  /** The list is one page of several. */
  readonly continue?: string
  /** How many all objects have. Default: more than a small collection. */
  readonly bytes?: number
  /** They have more values than a page may have. */
  readonly isTooMuch?: boolean
}

function scene(world: World) {
  const told: string[] = []
  let isGone = false
  const pages: Pick<ResourcePages, 'charge' | 'page' | 'watch'> = {
    charge: serverCharge('https://127.0.0.1'),
    page: async ({ limit }) => {
      const version = world.current.shift()
      told.push(`${limit === undefined ? 'list' : 'probe'} ${version}`)
      if (limit === undefined && world.isTooMuch) throw new AnswerTooLargeError('more than 100000 values')
      const items = ['a', 'b'].map((name) => ({ metadata: { name, namespace: 'n', uid: name, resourceVersion: '5' } }))
      return { metadata: { resourceVersion: String(version), continue: world.continue }, items }
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
      return isGone ? '' : String(world.version)
    },
    bytes: world.bytes ?? SMALL_BYTES,
    reaches: async (version: string) => world.version >= Number(version),
    advance: (version: string) => {
      told.push(`advance ${version}`)
      world.version = Math.max(world.version, Number(version))
    },
    wentBack: () => {
      told.push('went back')
      isGone = true
    },
    holds: (listed: readonly ListedObject[]) => {
      assert.deepEqual(listed[1], { namespace: 'n', name: 'b', uid: 'b', resourceVersion: '5' })
      return String(listed.map(({ name }) => name)) === String(world.objects)
    },
  }
  const freshness = new FreshnessProofs(collection, pages, systemClock)
  const both = async (atOnce: boolean, whole: boolean): Promise<string | undefined> => {
    const state = await freshness.prove({ atOnce, whole })
    return state && (state.known === state.current ? state.known : `${state.known} is ${state.current}`)
  }
  const confirm = (): Promise<void> => freshness.confirm()
  const reach = (version: string): Promise<void> => freshness.reach(version)
  return { told, prove: (atOnce = false) => both(atOnce, false), proveAll: () => both(true, true), confirm, reach }
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

test('a version that clients were told of is reached by another watch, once, also where little is kept', async () => {
  const { reach, told } = scene({ version: 10, current: [], lines: [['BOOKMARK', 21]], bytes: 1 })
  await Promise.all([reach('20'), reach('19'), reach('20')])
  assert.deepEqual(told, ['watch 10', 'advance 21'])
  await reach('21')
  assert.deepEqual(told, ['watch 10', 'advance 21'])
  await reach('22')
  await reach('22')
  assert.deepEqual(told.slice(2), ['watch 21', 'watch 21'], 'it is not tried again by itself')
})

test('a version that a member made up once does not keep later ones from being reached', async () => {
  const { reach, told } = scene({ version: 10, current: [], lines: [['BOOKMARK', 21]] })
  await reach('9'.repeat(30))
  assert.deepEqual(told, ['watch 10'])
  await reach('20')
  assert.deepEqual(told, ['watch 10', 'watch 10', 'advance 21'])
})

test('a later version that clients are told of meanwhile is reached, too', async () => {
  const world: World = { version: 10, current: [], lines: [] }
  const { reach, told } = scene({
    ...world,
    get lines() {
      return [['BOOKMARK', this.version === 10 ? 20 : 30]] as const
    },
  })
  await Promise.all([reach('20'), reach('30')])
  assert.deepEqual(told, ['watch 10', 'advance 20', 'watch 20', 'advance 30'])
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

test('a cluster that has gone back in time is found without a question, as soon as it answers', async () => {
  const silent = { version: 10, current: [] as number[], lines: [] }
  const { confirm, told } = scene(silent)
  const confirmed = confirm()
  await confirm()
  silent.current.push(9)
  await confirmed
  assert.deepEqual(told, ['probe undefined', 'probe 9', 'went back'])
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

test('several lists of all objects that arrive meanwhile get one list of the cluster', async () => {
  const { prove, proveAll, told } = scene({ version: 10, current: [20, 21], lines: [], objects: ['a', 'b'] })
  assert.deepEqual(await Promise.all([proveAll(), proveAll(), prove(true), proveAll()]), [
    undefined,
    ...Array.from({ length: 3 }, () => '10 is 21'),
  ])
  assert.deepEqual(told, ['probe 20', 'list 21'])
})

test('who may wait is not kept waiting for a bookmark of a small collection', async () => {
  const small = { version: 10, current: [20], lines: [], bytes: SMALL_BYTES - 1 }
  const { prove, told } = scene({ ...small, objects: ['a', 'b'] })
  assert.equal(await prove(), '10 is 20')
  assert.deepEqual(told, ['list 20'])
  for (const more of [{ objects: ['a'] }, { objects: ['a', 'b'], continue: 'x' }]) {
    const other = scene({ ...small, current: [20], lines: [['BOOKMARK', 21]], ...more })
    assert.equal(await other.prove(), '21')
    assert.deepEqual(other.told, ['list 20', 'watch 10', 'advance 21'])
  }
})

test('one whose list is more than is parsed at once, though it has few bytes, is proved by a bookmark', async () => {
  const { prove, told } = scene({
    version: 10,
    current: [20, 21, 23],
    lines: [['BOOKMARK', 23]],
    bytes: SMALL_BYTES - 1,
    isTooMuch: true,
  })
  assert.equal(await prove(), '23')
  assert.deepEqual(told, ['list 20', 'probe 21', 'watch 10', 'advance 23'])
  // It is not asked for what was too much again and again.
  assert.equal(await prove(), '23')
  assert.deepEqual(told.slice(4), ['probe 23'])
})

test('who asks again and again does not cause as many lists', async () => {
  const { prove, told } = scene({
    version: 10,
    current: [20, 21, 22],
    lines: [],
    bytes: SMALL_BYTES - 1,
    objects: ['a', 'b'],
  })
  assert.equal(await prove(), '10 is 20')
  const second = prove()
  for (let turn = 0; turn < 5; turn++) await setImmediate()
  assert.deepEqual(await Promise.all([second, prove()]), ['10 is 21', '10 is 21'])
  assert.deepEqual(told, ['list 20', 'list 21'])
})

test('one that has other objects, or only some of them, proves nothing', async () => {
  for (const world of [{ objects: ['a', 'c'] }, { objects: ['a', 'b'], continue: 'more' }]) {
    const { proveAll, told } = scene({ version: 10, current: [20, 21], lines: [], ...world })
    assert.deepEqual(await Promise.all([proveAll(), proveAll(), proveAll()]), [undefined, undefined, undefined])
    assert.deepEqual(told, ['probe 20', 'list 21'])
  }
})

test('what has changed meanwhile may arrive', async () => {
  const { proveAll, told } = scene({
    version: 10,
    current: [20, 21],
    lines: [],
    get objects() {
      this.version = 21
      return ['a']
    },
  })
  assert.deepEqual(await Promise.all([proveAll(), proveAll(), proveAll()]), [undefined, '21', '21'])
  assert.deepEqual(told, ['probe 20', 'list 21'])
})

test('lists of some objects, and watches, do not cause a list of all', async () => {
  const some = scene({ version: 10, current: [20, 21], lines: [], objects: ['a', 'b'] })
  await Promise.all([some.prove(true), some.prove(true), some.proveAll(), some.prove(true)])
  assert.deepEqual(some.told, ['probe 20', 'probe 21'])
  const patient = scene({ version: 10, current: [20, 21], lines: [['BOOKMARK', 22]], objects: ['a', 'b'] })
  await Promise.all([patient.proveAll(), patient.proveAll(), patient.proveAll(), patient.prove()])
  assert.deepEqual(patient.told, ['probe 20', 'probe 21', 'watch 10', 'advance 22'])
})
