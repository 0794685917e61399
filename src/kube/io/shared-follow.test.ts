import assert from 'node:assert/strict'
import { test } from 'node:test'
import { MemoryObjects } from '../../../test/harness/objects/memory-objects.ts'
import { type JsonObject, nameOf } from '../../kit/api/json/json-object.ts'
import { PODS } from '../api/kinds/foreign-kinds.ts'
import { LEASES } from '../api/kinds/lease-kind.ts'
import { SECRETS } from '../api/kinds/secret-kind.ts'
import type { FollowChoice, FollowEvents, Following, ObjectClient } from '../api/object-client.ts'
import { sharedFollow } from './shared-follow.ts'

class Follower implements FollowEvents {
  readonly lines: string[] = []
  /** Called with each line, before it is recorded. */
  onLine: (line: string) => void = () => undefined

  onReplace(objects: readonly JsonObject[]): void {
    this.#note(`list ${objects.map(shown).join(' ')}`)
  }

  onChange(type: string, object: JsonObject): void {
    this.#note(`${type} ${shown(object)}`)
  }

  onState(current: boolean, message: string): void {
    this.#note(`${current ? 'current' : 'away'} ${message}`.trim())
  }

  onVersion(version: string): void {
    this.#note(`version ${version}`)
  }

  /** Without versions. */
  get told(): readonly string[] {
    return this.lines.filter((line) => !line.startsWith('version'))
  }

  #note(line: string): void {
    this.onLine(line)
    this.lines.push(line)
  }
}

class World {
  readonly server = new MemoryObjects()
  readonly errors: string[] = []
  readonly #follow: ObjectClient['follow']

  constructor() {
    const nothing = (): void => undefined
    const error = (_message: string, fields?: Record<string, unknown>): void =>
      void this.errors.push(String(fields?.['error']))
    this.#follow = sharedFollow(this.server, [SECRETS], { debug: nothing, info: nothing, warn: nothing, error }, [PODS])
  }

  put(name: string, value = '', labels: Readonly<Record<string, string>> = {}): void {
    this.server.put(SECRETS, { metadata: { name, namespace: 'default', labels }, value })
  }

  join(choice: FollowChoice = {}, kind = SECRETS): { readonly heard: Follower; readonly following: Following } {
    const heard = new Follower()
    return { heard, following: this.#follow(kind, '', heard, choice) }
  }
}

function shown(object: JsonObject): string {
  const { value = '' } = object
  return value === '' ? nameOf(object) : `${nameOf(object)}=${value}`
}

/** Waits until all have received the last list: there are fewer of them than turns here. */
async function turns(): Promise<void> {
  for (let i = 0; i < 10; i++) await new Promise((resolve) => setImmediate(resolve))
}

test('all hear the same changes in order from one watch, each transformed as it asks', async () => {
  const world = new World()
  world.put('a', '1')
  const [whole, slim] = [world.join(), world.join({ transform: ({ metadata }) => ({ metadata }) })]
  await turns()
  world.put('b', '2')
  world.put('a', '3')
  world.server.remove(SECRETS, 'b', 'default')
  assert.deepEqual(whole.heard.told, ['list a=1', 'current', 'ADDED b=2', 'MODIFIED a=3', 'DELETED b=2'])
  assert.deepEqual(slim.heard.told, ['list a', 'current', 'ADDED b', 'MODIFIED a', 'DELETED b'])
  assert.equal(whole.heard.lines.length - whole.heard.told.length, 4, 'a version after the list and each change')
  assert.equal(world.server.followers(SECRETS), 1)
})

test('a follower that joins late hears first what the objects are, then every change since, and no change twice', async () => {
  const world = new World()
  world.put('a', '1')
  const early = world.join()
  await turns()
  world.put('b')
  world.server.remove(SECRETS, 'b', 'default')
  const late = world.join()
  assert.equal(late.heard.lines.length, 0, 'not before it has got its handle')
  world.put('a', '2')
  await turns()
  world.put('c')
  assert.deepEqual(late.heard.told, ['list a=2', 'current', 'ADDED c'])
  assert.deepEqual(early.heard.lines.at(-1), late.heard.lines.at(-1))
  assert.equal(
    late.heard.lines.findIndex((line) => line.startsWith('version ')),
    1,
  )
})

test('a list after a gap replaces what all know, and late followers do not hear what was gone in it', async () => {
  const world = new World()
  world.put('a')
  world.put('b')
  const early = world.join()
  await turns()
  world.server.away = true
  world.server.remove(SECRETS, 'a', 'default')
  world.server.comeBack()
  const late = world.join()
  assert.deepEqual(early.heard.told.slice(2), [], 'in a turn of its own')
  await turns()
  assert.deepEqual(early.heard.told.slice(2), ['list b', 'current'])
  assert.deepEqual(late.heard.told, ['list b', 'current'])
})

test('a server that is away is said to those who join meanwhile, beside what was known', async () => {
  const followers: FollowEvents[] = []
  const nothing = (): void => undefined
  const stop = (): Promise<void> => Promise.resolve()
  const follow = sharedFollow(
    { follow: (_kind, _namespace, events) => ({ stop, ...(followers.push(events) && {}) }) },
    [SECRETS],
    { debug: nothing, info: nothing, warn: nothing, error: nothing },
  )
  follow(SECRETS, '', new Follower())
  const before = new Follower()
  follow(SECRETS, '', before)
  await turns()
  assert.deepEqual(before.lines, [])
  followers[0]?.onReplace([{ metadata: { name: 'a' } }])
  followers[0]?.onState(true, '')
  await turns()
  followers[0]?.onState(false, 'no answer')
  const late = new Follower()
  follow(SECRETS, '', late)
  await turns()
  assert.deepEqual(before.lines, ['list a', 'current', 'away no answer'])
  assert.deepEqual(late.lines, ['list a', 'away no answer'])
  assert.equal(followers.length, 1)
})

test('an error of one follower stops no other, and what it could not take is not a version of its own', async () => {
  const world = new World()
  const [bad, good] = [world.join(), world.join()]
  bad.heard.onLine = (line) => {
    if (line === 'ADDED a') throw new Error('I cannot')
  }
  await turns()
  world.put('a')
  world.put('b')
  assert.deepEqual(good.heard.told, ['list ', 'current', 'ADDED a', 'ADDED b'])
  assert.deepEqual(bad.heard.told, ['list ', 'current', 'ADDED b'])
  const versionsOf = ({ heard }: { readonly heard: Follower }): number => heard.lines.length - heard.told.length
  assert.deepEqual([versionsOf(good), versionsOf(bad)], [3, 2])
  assert.deepEqual(world.errors, ['Error: I cannot'])
})

test('who stops hears nothing more, also within a change; the watch ends with the last, and begins again with another', async () => {
  const world = new World()
  const [first, second] = [world.join(), world.join()]
  await turns()
  first.heard.onLine = (line) => {
    if (line === 'ADDED a') void second.following.stop()
  }
  world.put('a')
  assert.deepEqual(second.heard.told, ['list ', 'current'])
  await second.following.stop()
  assert.equal(world.server.followers(SECRETS), 1)
  await first.following.stop()
  assert.equal(world.server.followers(SECRETS), 0)
  const gone = world.join()
  await gone.following.stop()
  await turns()
  assert.deepEqual(gone.heard.lines, [])
  const again = world.join()
  await turns()
  assert.deepEqual(again.heard.told, ['list a', 'current'])
  assert.equal(world.server.followers(SECRETS), 1)
})

test('other selections have a watch of their own, and other kinds are not shared', async () => {
  const world = new World()
  world.put('a', '', { app: 'web' })
  world.put('b')
  const [web, again] = [world.join({ labelSelector: 'app=web' }), world.join({ labelSelector: 'app=web' })]
  const named = world.join({ name: 'b' })
  world.join()
  await turns()
  assert.deepEqual(
    [web, again, named].map(({ heard }) => heard.told[0]),
    ['list a', 'list a', 'list b'],
  )
  assert.equal(world.server.followers(SECRETS), 3)
  world.join({}, LEASES)
  world.join({}, LEASES)
  assert.equal(world.server.followers(LEASES), 2)
})

test('followers of a large kind share a watch from the beginning; one that joins when all have heard the list gets its own', async () => {
  const world = new World()
  const put = (name: string): void => void world.server.put(PODS, { metadata: { name, namespace: 'default' } })
  put('a')
  const early = [world.join({}, PODS), world.join({}, PODS)]
  await turns()
  put('b')
  const late = world.join({}, PODS)
  await turns()
  put('c')
  for (const { heard } of early) assert.deepEqual(heard.told, ['list a', 'current', 'ADDED b', 'ADDED c'])
  assert.deepEqual(late.heard.told, ['list a b', 'current', 'ADDED c'])
  assert.equal(world.server.followers(PODS), 2)
  // A gap: all receive the new list from their existing watch.
  world.server.comeBack()
  await turns()
  for (const { heard } of early) assert.deepEqual(heard.told.slice(4), ['list a b c', 'current'])
  for (const { following } of [...early, late]) await following.stop()
  assert.equal(world.server.followers(PODS), 0)
})
