import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { waitFor } from '../../../test/harness/wait.ts'
import type { JsonObject } from '../../kit/api/json/json-object.ts'
import type { Logger } from '../../kit/api/ports.ts'
import { serverCharge } from '../../kit/core/shares/charge.ts'
import type { FollowEvents } from '../api/object-client.ts'
import { statusError } from '../api/status.ts'
import { AnswerBytes } from './answers/thread-answers.ts'
import { FollowedBytes, followedBytes, limitFollowedBytes, OutgrownError } from './followed-bytes.ts'
import { listAll, type ResourcePages } from './list.ts'
import { type FollowOptions, followResource } from './watch.ts'
import { WatchLines } from './watch-lines.ts'

const quiet = (): void => undefined
const charge = serverCharge('https://127.0.0.1')
const log: Logger = { debug: quiet, info: quiet, warn: quiet, error: quiet }

function object(name: string, version: number): JsonObject {
  return { metadata: { name, resourceVersion: String(version) } }
}

function line(type: string, subject: JsonObject): Buffer {
  return Buffer.from(`${JSON.stringify({ type, object: subject })}\n`)
}

const GONE = { kind: 'Status', code: 410, reason: 'Expired', message: 'too old resource version' }

/** The server's behaviour on the next watch: sends chunks, then ends, breaks, or stays open. */
interface Step {
  readonly refuse?: Error
  readonly chunks?: readonly Buffer[]
  readonly how?: 'end' | 'break' | 'stay'
}

const noBytes = (): never => assert.fail('the client reads the answers itself')

function script(
  t: TestContext,
  steps: Step[],
  lists: (JsonObject[] | Error)[],
  metadata: JsonObject = { resourceVersion: '10' },
) {
  const asked: Record<string, string>[] = []
  const received: string[] = []
  const page = async (): Promise<JsonObject> => {
    const items = lists.length > 1 ? lists.shift() : lists[0]
    received.push('list')
    if (items instanceof Error) throw items
    return { kind: 'ThingList', apiVersion: 'v1', items, metadata }
  }
  const pages: ResourcePages = {
    charge,
    page,
    bytes: async () => Buffer.from(JSON.stringify(await page())),
    watch: async (query, _silenceMs, signal) => {
      asked.push({ ...query })
      const { refuse, chunks = [], how = 'end' } = steps.shift() ?? { how: 'stay' as const }
      if (refuse !== undefined) throw refuse
      return (async function* () {
        yield* chunks
        if (how === 'break') throw new Error('the connection broke')
        if (how === 'stay') {
          await new Promise((_, reject) => signal.addEventListener('abort', () => reject(new Error('aborted'))))
        }
      })()
    },
  }
  const nameOf = (one: JsonObject): string => String(Object(one['metadata']).name)
  const events: FollowEvents = {
    onReplace: (objects: readonly JsonObject[]) => received.push(`all ${objects.map(nameOf).join(',')}`),
    onChange: (type: string, one: JsonObject) => received.push(`${type} ${nameOf(one)}`),
    onState: (current: boolean, message: string, code = 0) =>
      received.push(`${current} ${message}${code === 0 ? '' : ` (${code})`}`.trim()),
  }
  const timing = { firstDelayMs: 2, longestDelayMs: 8, awayMs: 10_000, watchSeconds: 100, random: () => 0 }
  const follow = (more: Partial<FollowOptions> = {}): void => {
    const following = followResource(pages, events, { log, resource: 'things', ...timing, ...more })
    t.after(() => following.stop())
  }
  return { asked, received, events, follow }
}

test('a watch resumes from the last event or bookmark', async (t) => {
  const { asked, received, follow } = script(
    t,
    [
      { chunks: [line('ADDED', object('b', 12)), line('BOOKMARK', object('', 40))], how: 'end' },
      { chunks: [line('MODIFIED', object('b', 41))], how: 'break' },
    ],
    [[object('a', 9)]],
  )
  follow()
  await waitFor('three watches', () => asked.length === 3)
  assert.deepEqual(received, ['list', 'all a', 'true', 'ADDED b', 'MODIFIED b'])
  assert.deepEqual(
    asked.map(({ resourceVersion }) => resourceVersion),
    ['10', '40', '41'],
  )
  assert.deepEqual([asked[0]?.['allowWatchBookmarks'], asked[0]?.['timeoutSeconds']], ['true', '100'])
})

test('a watch begins at the version of a list that the caller has read, and lists if the server no longer knows it', async (t) => {
  const steps: Step[] = [
    { chunks: [line('ADDED', object('b', 8))], how: 'break' },
    { chunks: [line('ERROR', GONE)] },
    { how: 'stay' },
  ]
  const { asked, received, follow } = script(t, steps, [[object('a', 9)]])
  follow({ from: '7' })
  await waitFor('three watches', () => asked.length === 3)
  assert.deepEqual(received, ['true', 'ADDED b', 'list', 'all a'])
  assert.deepEqual(
    asked.map(({ resourceVersion }) => resourceVersion),
    ['7', '8', '10'],
  )
})

test('a watch that goes on where the last one ended is told of; one behind a list is not', async (t) => {
  const steps: Step[] = [
    { chunks: [line('ADDED', object('b', 12))], how: 'break' },
    { chunks: [line('ERROR', GONE)] },
    { how: 'stay' },
  ]
  const { received, events, follow } = script(t, steps, [[object('a', 9)]])
  events.onResumed = () => received.push('resumed')
  follow()
  await waitFor('the second list', () => received.length === 7)
  assert.deepEqual(received, ['list', 'all a', 'true', 'ADDED b', 'resumed', 'list', 'all a'])
})

test('events that come all at once are not handled in one turn of the event loop', async (t) => {
  const many = Array.from({ length: 3000 }, (_, n) => line('ADDED', object(`a-${n}`, 11 + n)))
  const { received, events, follow } = script(t, [{ chunks: [Buffer.concat(many)], how: 'stay' }], [[]])
  let turn = 0
  const byTurn: number[] = []
  const nextTurn = (): void => {
    turn++
    if (received.at(-1) !== 'ADDED a-2999') setImmediate(nextTurn)
  }
  const { onChange } = events
  events.onChange = (type, one) => {
    byTurn[turn] = (byTurn[turn] ?? 0) + 1
    onChange(type, one)
  }
  setImmediate(nextTurn)
  follow()
  await waitFor('the last event', () => received.at(-1) === 'ADDED a-2999')
  assert.ok(Math.max(...Object.values(byTurn)) < 1000, `in each turn: ${byTurn.join(' ')}`)
})

test('the version is reported after a list, an event and a bookmark, once the listener has handled it', async (t) => {
  const steps: Step[] = [
    { chunks: [line('ADDED', object('b', 12)), line('BOOKMARK', object('', 40))] },
    { chunks: [line('ERROR', GONE)] },
  ]
  const { asked, received, events, follow } = script(t, steps, [[object('a', 9)]])
  events.onVersion = (version) => received.push(version)
  follow({ transform: ({ metadata }) => ({ metadata: { name: `slim ${Object(metadata).name}` } }) })
  await waitFor('three watches', () => asked.length === 3)
  const whole = ['list', 'all slim a', '10']
  assert.deepEqual(received, [...whole, 'true', 'ADDED slim b', '12', '40', ...whole])
})

test('a gap in the history leads to a list, whether it arrives as an event or as a response', async (t) => {
  const { asked, received, follow } = script(
    t,
    [{ chunks: [line('ERROR', GONE)] }, { refuse: statusError('Expired', 'too old') }],
    [[object('a', 9)], [object('b', 11)], [object('c', 12)]],
  )
  follow()
  await waitFor('three watches', () => asked.length === 3)
  assert.deepEqual(received, ['list', 'all a', 'true', 'list', 'all b', 'list', 'all c'])
})

test('watches that end at once, or send something else, are not repeated in a tight loop, and count as failed', async (t) => {
  const nonsense = [Buffer.from('<html>\n'), line('ADDED', { metadata: {} }), Buffer.from('{"type":1}\n')]
  const steps: Step[] = nonsense.map((chunk) => ({ chunks: [chunk] }))
  const { received, follow, asked } = script(t, [{}, ...steps, {}, {}], [[object('a', 9)]])
  follow({ awayMs: 5 })
  // Anything but an event leads to a list; whether the outage is long enough to be reported depends on timing.
  await waitFor('the watch that stays', () => asked.length >= 7 && ['true', 'all a'].includes(received.at(-1) ?? ''))
  assert.ok(received.length < 40)
})

test('lists without a resourceVersion are not repeated in a tight loop, and count as failed', async (t) => {
  const { asked, received, follow } = script(t, [], [[object('a', 9)]], {})
  let delays = 0
  // Asked for once for each delay, and for each watch.
  const random = (): number => {
    delays++
    return 0
  }
  follow({ awayMs: 30, firstDelayMs: 10, longestDelayMs: 10, random })
  await waitFor('the report', () => received.includes('false the list has no resourceVersion'))
  assert.deepEqual(asked, [])
  const lists = received.filter((one) => one === 'list').length
  assert.ok(delays >= lists - 1, `${lists} lists, ${delays} delays`)
})

test('a refusal is reported at once, and everything is read again when it is over', async (t) => {
  const denied = statusError('Forbidden', 'things is forbidden')
  const { received, follow } = script(t, [], [denied, denied, [object('a', 9)]])
  follow()
  await waitFor('the list', () => received.at(-1) === 'true')
  assert.deepEqual(received, ['list', 'false things is forbidden (403)', 'list', 'list', 'all a', 'true'])
})

test('a listener that throws does not end the following', async (t) => {
  let changes = 0
  const chunks = [line('ADDED', object('a', 11)), line('ADDED', object('b', 12))]
  const pages: ResourcePages = {
    charge,
    bytes: noBytes,
    page: async () => ({ items: [], metadata: { resourceVersion: '10' } }),
    watch: async () =>
      (async function* () {
        yield* changes === 0 ? chunks : []
      })(),
  }
  const fail = (): never => {
    changes++
    throw new Error('bug')
  }
  const events = { onReplace: fail, onChange: fail, onState: quiet }
  const following = followResource(pages, events, { log, resource: 'things', firstDelayMs: 1, awayMs: 10_000 })
  t.after(() => following.stop())
  await waitFor('the watch', () => changes >= 1)
})

test('pages: an old continue token leads to another list, once', async () => {
  const queries: Readonly<Record<string, string>>[] = []
  const told: string[] = []
  const pages: ResourcePages = {
    charge,
    bytes: noBytes,
    page: async (query) => {
      queries.push(query)
      if (query['continue'] === 'old') throw statusError('Expired', 'the continue token is too old')
      const head = { kind: 'SecretList', apiVersion: 'v1' }
      if (query['continue'] === 'new') return { ...head, items: [{}], metadata: { resourceVersion: '7' } }
      return {
        ...head,
        items: [{}],
        metadata: { resourceVersion: '5', continue: queries.length === 1 ? 'old' : 'new' },
      }
    },
    watch: () => assert.fail('no watch'),
  }
  const onPage = (objects: readonly JsonObject[], first: boolean): void => void told.push(`${objects.length} ${first}`)
  const { items, resourceVersion } = await listAll(pages, { onPage })
  assert.deepEqual([items, resourceVersion], [Array(2).fill({ apiVersion: 'v1', kind: 'Secret' }), '7'])
  const first = { limit: '200' }
  assert.deepEqual(queries, [first, { ...first, continue: 'old' }, first, { ...first, continue: 'new' }])
  assert.deepEqual(told, ['1 true', '1 true', '1 false'])
})

test('pages are delivered one by one, transformed', async (t) => {
  const told: string[] = []
  const nameOf = (one: JsonObject): string => String(one['name'])
  const pages: ResourcePages = {
    charge,
    bytes: noBytes,
    page: async (query) => {
      const last = query['continue'] === 'more'
      const items = [last ? { name: 'c' } : { name: 'a' }, last ? { name: 'd' } : { name: 'b' }]
      return { items, metadata: last ? { resourceVersion: '10' } : { continue: 'more' } }
    },
    watch: (_query, _silenceMs, signal) =>
      new Promise((_, reject) => signal.addEventListener('abort', () => reject(new Error('aborted')))),
  }
  const events: FollowEvents = {
    onPage: (objects, first) => told.push(`page ${objects.map(nameOf)} ${first}`),
    onReplace: (objects) => told.push(`all ${objects.map(nameOf)}`),
    onChange: () => undefined,
    onState: () => undefined,
  }
  const transform = (one: JsonObject): JsonObject => ({ name: nameOf(one).toUpperCase() })
  const following = followResource(pages, events, { log, resource: 'things', transform })
  t.after(() => following.stop())
  await waitFor('the list', () => told.length === 3)
  assert.deepEqual(told, ['page A,B true', 'page C,D false', 'all A,B,C,D'])
})

test('lines: however they are chunked', () => {
  const whole = Buffer.concat([line('ADDED', object('ä', 1)), line('DELETED', object('b', 2))])
  for (let cut = 0; cut <= whole.length; cut++) {
    const lines = new WatchLines(new AnswerBytes(charge))
    const events = [...lines.push(whole.subarray(0, cut)), ...lines.push(whole.subarray(cut))]
    assert.deepEqual(
      events.map(({ type, object: one }) => `${type} ${Object(one['metadata']).name}`),
      ['ADDED ä', 'DELETED b'],
    )
  }
})

test('a refusal is reported once, and replaces what was wrong before', async (t) => {
  const { received, follow } = script(
    t,
    [],
    [new Error('no connection'), statusError('Forbidden', 'pods is forbidden')],
  )
  follow({ awayMs: 20 })
  await waitFor('many lists', () => received.filter((one) => one === 'list').length > 20)
  assert.deepEqual([...new Set(received.filter((one) => one !== 'list'))], ['false pods is forbidden (403)'])
})

test('objects without end: the following holds no more than there is room for, says why, and gives all of it back', async (t) => {
  limitFollowedBytes(100_000)
  t.after(() => limitFollowedBytes(256 * 1024 * 1024))
  let lists = 0
  let sent = 0
  let kept = new Map<string, JsonObject>()
  const faults: string[] = []
  let small = false
  const big = (): JsonObject => object(`${'n'.repeat(1000)}${sent++}`, 11 + sent)
  const pages: ResourcePages = {
    charge,
    bytes: noBytes,
    page: async () => {
      lists++
      return { items: small ? [object('a', 9)] : [object('a', 9), big()], metadata: { resourceVersion: '10' } }
    },
    watch: async (_query, _silenceMs, signal) =>
      (async function* () {
        if (!small) {
          while (!small) yield line('ADDED', big())
          yield line('ERROR', GONE)
          return
        }
        await new Promise((_, reject) => signal.addEventListener('abort', () => reject(new Error('aborted'))))
      })(),
  }
  const nameOf = (one: JsonObject): string => String(Object(one['metadata']).name)
  const events: FollowEvents = {
    onReplace(objects) {
      kept = new Map(objects.map((one) => [nameOf(one), one]))
    },
    onChange: (_type, one) => {
      kept.set(nameOf(one), one)
      assert.ok(kept.size <= 100, 'each is above 1,000 bytes')
    },
    onState: (current, message) => void (current || faults.push(message)),
  }
  const following = followResource(pages, events, {
    log,
    resource: 'things',
    firstDelayMs: 1,
    longestDelayMs: 2,
    awayMs: 0,
  })
  t.after(() => following.stop())
  await waitFor('several lists', () => lists >= 5 && faults.length > 0)
  assert.match(faults[0] ?? '', /of 100000 bytes of objects that the gateway follows.*--max-followed-bytes/)
  small = true
  await waitFor('what is there now', () => kept.size === 1)
  const other = new FollowedBytes({ ...charge, source: 'another cluster' })
  for (let i = 0; i < 50; i++) other.add(object('b'.repeat(1000), i))
  await following.stop()
  other.drop()
  assert.equal(followedBytes().known.held, 0)
})

test('a list that is larger than there is room for leaves what was kept as it is', async (t) => {
  limitFollowedBytes(10_000)
  t.after(() => limitFollowedBytes(256 * 1024 * 1024))
  const memory = new FollowedBytes(charge)
  t.after(() => memory.drop())
  const listed = (count: number): void => {
    let isWhole = false
    memory.begin()
    try {
      for (let i = 0; i < count; i++) memory.list([object('c'.repeat(1000), i)])
      isWhole = true
    } finally {
      memory.end(isWhole)
    }
  }
  listed(3)
  const { held } = followedBytes().known
  assert.throws(() => listed(20), OutgrownError)
  assert.equal(followedBytes().known.held, held)
  listed(2)
  assert.ok(followedBytes().known.held < held)
})

test('a follower that reads answers itself gets their bytes, and nothing else parses them', async (t) => {
  const seen: string[] = []
  const { received, events, follow } = script(
    t,
    [{ chunks: [line('ADDED', object('b', 12)), line('BOOKMARK', object('', 40)), Buffer.from('{no JSON}\n')] }],
    [[object('a', 9), object('c', 8)]],
  )
  events.onVersion = (version) => received.push(version)
  follow({
    raw: {
      encoding: 'json',
      page: (body) => {
        const { items, metadata } = JSON.parse(body.toString())
        return { objects: items, resourceVersion: metadata.resourceVersion, next: '' }
      },
      event: (bytes) => {
        seen.push(String(bytes))
        const { type, object: one } = JSON.parse(bytes.toString())
        return { type, resourceVersion: one.metadata.resourceVersion, object: one }
      },
    },
    transform: () => assert.fail('the objects are read already'),
  })
  await waitFor(
    'another list, since an event cannot be read',
    () => received.filter((one) => one === 'list').length > 1,
  )
  assert.deepEqual(received.slice(0, 6), ['list', 'all a,c', '10', 'true', 'ADDED b', '12'])
  assert.deepEqual(seen, [
    ...[line('ADDED', object('b', 12)), line('BOOKMARK', object('', 40))].map((one) => String(one).trim()),
    '{no JSON}',
  ])
})

test('what a follower that reads answers itself keeps is its own to count: no event of a watch adds to it', async (t) => {
  limitFollowedBytes(100_000)
  t.after(() => limitFollowedBytes(256 * 1024 * 1024))
  const EVENTS = 2000
  const chunks = Array.from({ length: EVENTS }, (_, at) => line('MODIFIED', object('a', 11 + at)))
  const { received, follow } = script(t, [{ chunks, how: 'stay' }], [[object('a', 9)]])
  follow({
    raw: {
      encoding: 'json',
      page: (body) => {
        const { items, metadata } = JSON.parse(body.toString())
        return { objects: items, resourceVersion: metadata.resourceVersion, next: '' }
      },
      event: (bytes) => {
        const { type, object: one } = JSON.parse(bytes.toString())
        return { type, resourceVersion: one.metadata.resourceVersion, object: one }
      },
    },
  })
  await waitFor('all events', () => received.filter((one) => one === 'MODIFIED a').length >= EVENTS)
  assert.equal(received.filter((one) => one === 'list').length, 1)
  assert.equal(followedBytes().known.held, 0)
})

test('a page that cannot be read ends a list', async (t) => {
  const { received, follow } = script(t, [], [[object('a', 9)]])
  const fail = (): never => {
    throw new Error('not a list')
  }
  follow({ raw: { encoding: 'json', page: fail, event: fail } })
  await waitFor('another list', () => received.length > 1)
  assert.deepEqual(new Set(received), new Set(['list']))
})

test('a follower that keeps its place resumes its watch, however long it was away', async (t) => {
  const away = { refuse: new Error('connection refused') }
  const steps: Step[] = [{ chunks: [line('ADDED', object('b', 12))], how: 'break' }, ...Array(12).fill(away)]
  const { asked, received, follow } = script(t, steps, [[object('a', 9)]])
  follow({ keepsPlace: true, awayMs: 5 })
  await waitFor('it is back', () => received.length === 6)
  assert.deepEqual(
    received.map((text) => text.split(' ')[0]),
    ['list', 'all', 'true', 'ADDED', 'false', 'true'],
  )
  assert.equal(asked.at(-1)?.['resourceVersion'], '12')
})
