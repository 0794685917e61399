// Pages of consistent lists of quiet members, which nothing but their own lists proves to be current: against stubs, which see what they are asked, and as which user.

import assert from 'node:assert/strict'
import type { ClientHttp2Session, ClientHttp2Stream } from 'node:http2'
import '../harness/property-seed.ts'
import { after, afterEach, before, beforeEach, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import fc from 'fast-check'
import { parseVector } from '../../src/federation/core/vectors.ts'
import { headerValue } from '../../src/gateway/core/request/hop-headers.ts'
import { compareResourceVersions } from '../../src/kube/core/objects/resource-version.ts'
import { createCA } from '../../src/pki/io/pki.ts'
import { h2Connect, h2Open, h2Request } from '../harness/clients/h2-client.ts'
import { type ShownItem, shownNames } from '../harness/federation/federated-clusters.ts'
import { PagedMember, pagedFederation } from '../harness/federation/paged-member.ts'
import { type InProcessGateway, startInProcess } from '../harness/gateways/in-process.ts'
import { clientPair } from '../harness/objects/objects.ts'
import { PATIENT } from '../harness/patience.ts'
import { waitFor } from '../harness/wait.ts'

const PODS = '/api/v1/pods'
const WEST_UNPROVED = '"west could not be proved to be current"'
const METADATA = 'application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io'
const clientCA = createCA({ commonName: 'clients of all' })

let east: PagedMember
let west: PagedMember
let gateway: InProcessGateway
let session: ClientHttp2Session

async function list(query: string) {
  const path = `${PODS}?${query}`
  const { status, head, body } = await h2Request(session, [':method', 'GET', ':path', path, ':authority', 'all'])
  const { items = [], metadata, message } = JSON.parse(body.toString())
  const names = shownNames(items).map((name) => name.replace('--default', ''))
  return { status, names, metadata, message, warning: headerValue([...head], 'warning') ?? '' }
}

/** All pages. @param between called behind each */
async function pages(limit: number, between: () => void = () => undefined) {
  const names: string[][] = []
  const versions = new Set<string>()
  for (let next = ''; names.length === 0 || next !== ''; ) {
    const page = await list(`limit=${limit}${next === '' ? '' : `&continue=${next}`}`)
    assert.deepEqual([page.status, page.warning], [200, ''], page.message)
    names.push(page.names)
    versions.add(page.metadata.resourceVersion)
    next = page.metadata.continue ?? ''
    between()
  }
  assert.equal(versions.size, 1)
  return { names, version: [...versions][0] ?? '' }
}

const asked = ({ lists }: PagedMember): string[] => lists.map(({ query }) => query.toString())

before(async () => {
  ;[east, west] = await Promise.all([PagedMember.start(), PagedMember.start()])
  for (const name of ['a', 'b', 'c']) for (const member of [east, west]) member.write(name)
  gateway = await startInProcess(pagedFederation([east, west], clientCA), {})
  session = h2Connect({ port: gateway.port, serverName: 'all', certificate: clientPair(clientCA, 'alice') })
  await waitFor('what is kept of both', async () => (await list('')).names.length === 6)
})
beforeEach(() => {
  for (const member of [east, west]) {
    member.pass()
    member.lists.length = 0
    member.wholes = 0
  }
})
afterEach(() => {
  for (const member of [east, west]) {
    member.release()
    member.sendProofs()
    member.isSilent = false
    member.change = () => undefined
  }
})
after(async () => {
  session?.destroy()
  await gateway?.stop()
  await east?.stop()
  await west?.stop()
})

test('the first page asks each member as the caller: the first for its objects, the other for its version', async () => {
  const page = await list('limit=2')
  assert.deepEqual([page.names, page.warning], [['east/a', 'east/b'], ''])
  assert.equal(page.metadata.remainingItemCount, 4)
  assert.deepEqual([asked(east), asked(west)], [['limit=2'], ['limit=1']])
  for (const { user, accept } of [...east.lists, ...west.lists]) assert.deepEqual([user, accept], ['alice', METADATA])
  assert.ok(page.metadata.resourceVersion.endsWith(`03${east.version}03${west.version}`))
  assert.deepEqual([east.wholes, west.wholes], [0, 0], 'nothing else proves that they are current')
})

test('pages are one state, whatever is written in between, while nothing tells that what is kept is as new', async () => {
  let writes = 0
  const { names } = await pages(2, () => {
    east.pass()
    west.pass()
    writes++
  })
  assert.deepEqual(names, [
    ['east/a', 'east/b'],
    ['east/c', 'west/a'],
    ['west/b', 'west/c'],
  ])
  assert.equal(writes, 3)
  assert.ok(asked(west).some((query) => query.includes('resourceVersionMatch=Exact')))
})

test('pages of a member that has gone on do not wait for what is kept of the next one', async () => {
  let writes = 0
  const { names } = await pages(1, () => east.write('a', `note ${writes++}`))
  assert.deepEqual(names.flat(), ['east/a', 'east/b', 'east/c', 'west/a', 'west/b', 'west/c'])
})

test('pages have what was there at first, though it has changed since, and a watch brings what has', async () => {
  let round = 0
  const { names, version } = await pages(2, () => {
    if (round++ > 0) return
    east.remove('c')
    west.write('b', 'changed')
    west.write('d')
  })
  assert.deepEqual(names.flat(), ['east/a', 'east/b', 'east/c', 'west/a', 'west/b', 'west/c'])
  const now = await pages(4)
  assert.deepEqual(now.names.flat(), ['east/a', 'east/b', 'west/a', 'west/b', 'west/c', 'west/d'])
  assert.notEqual(now.version, version)
  east.write('c')
  west.remove('d')
})

test('what a member has and is not kept yet is never left out without a Warning', async () => {
  await waitFor('all of it', async () => (await list('limit=10')).names.length === 6)
  east.holdBack()
  east.write('b2')
  const page = await list('limit=10')
  assert.equal(page.status, 200)
  assert.match(page.warning, /"east could not be proved to be current"/)
  east.release()
  await waitFor('what was held back', async () => (await list('limit=10')).names.includes('east/b2'))
  east.remove('b2')
  await waitFor('all of it', async () => (await list('limit=10')).names.length === 6)
})

test('a list that goes on at another version than that of the first page proves nothing', PATIENT, async () => {
  await waitFor('all of it', async () => (await list('limit=10')).names.length === 6)
  east.holdBack()
  east.write('c2')
  const { names, metadata, warning } = await list('limit=2')
  assert.deepEqual([names, warning], [['east/a', 'east/b'], ''])
  east.remove('c2')
  // As of a token that gives up consistency: what is kept has the same objects as the cluster has now, and other ones than it had then.
  east.change = (now) => {
    now.items = now.items.filter((item) => !JSON.stringify(item).includes('"c2"'))
    now.metadata = { resourceVersion: east.version }
  }
  assert.equal((await list(`limit=2&continue=${metadata.continue}`)).status, 504)
  east.change = () => undefined
  east.release()
  await waitFor('the page', async () => {
    const page = await list(`limit=2&continue=${metadata.continue}`)
    if (page.status === 200) assert.deepEqual(page.names, ['east/c', 'east/c2'])
    return page.status === 200
  })
})

for (const [what, change] of [
  ['of another version than was asked for', (list) => Object.assign(list.metadata, { resourceVersion: '7' })],
  ['without a version', (list) => Object.assign(list.metadata, { resourceVersion: '' })],
  ['with a version that is none', (list) => Object.assign(list.metadata, { resourceVersion: '1e3' })],
  ['with a token of any length', (list) => Object.assign(list.metadata, { continue: 'a'.repeat(5000) })],
  ['without its first object', (list) => list.items.shift()],
  ['with an object twice', (list) => list.items.unshift(list.items[0])],
  ['with nothing that is an object', (list) => list.items.splice(0, 9, null, 7, 'a', [])],
  ['with more objects than a page may have', (list) => Object.assign(list, { items: Array(60_000).fill({ a: 1 }) })],
  ['that is larger than a page may be', (list) => list.items.push('a'.repeat(2_000_000))],
] satisfies [string, (list: Parameters<PagedMember['change']>[0]) => unknown][]) {
  test(`a list of a member ${what} proves nothing, and the answer is what it would be without`, async () => {
    east.change = (list) => void change(list)
    const page = await list('limit=2')
    assert.deepEqual([page.status, page.names, page.warning], [200, ['east/a', 'east/b'], ''])
    assert.ok(east.wholes > 0, 'a list of all has proved it')
  })
}

test('a list that is proved without the list of a member names no older version of it than one before', async () => {
  const slotsOf = (version: string): readonly string[] => parseVector(version)?.versions ?? []
  east.pass()
  const before = slotsOf((await list('limit=2')).metadata.resourceVersion)
  assert.equal(before[0], east.version)
  east.isSilent = true
  const listed = list('limit=2')
  // What is kept is brought to the version that was named: here, by a change.
  await sleep(700)
  east.write('a', 'changed')
  const page = await listed
  assert.deepEqual([page.status, page.warning], [200, ''])
  const after = slotsOf(page.metadata.resourceVersion)
  assert.ok(
    before.every((version, slot) => (compareResourceVersions(version, after[slot] ?? '') ?? 1) <= 0),
    `${before} then ${after}`,
  )
})

test('a member that does not answer its users is proved as ever', async () => {
  east.isSilent = true
  const page = await list('limit=2')
  assert.deepEqual([page.status, page.names, page.warning], [200, ['east/a', 'east/b'], ''])
  assert.ok(east.wholes > 0)
})

test('a namespace is asked for in its member alone, under its own name', async () => {
  const path = '/api/v1/namespaces/east--default/pods?limit=2'
  const { body } = await h2Request(session, [':method', 'GET', ':path', path, ':authority', 'all'])
  assert.equal(JSON.parse(body.toString()).items.length, 2)
  assert.deepEqual([asked(east), asked(west)], [['limit=2'], []])
})

test('a token whose own part was changed shows nothing else than the page', async () => {
  const { metadata } = await list('limit=2')
  const token = JSON.parse(Buffer.from(metadata.continue, 'base64url').toString())
  assert.ok(token.next !== '')
  const changed = (more: object): string => Buffer.from(JSON.stringify({ ...token, ...more })).toString('base64url')
  for (const next of [
    'x',
    `${east.version} `,
    `${east.version} b`,
    '7 a',
    `${east.version} a&limit=9`,
    '',
    'é'.repeat(200),
  ]) {
    const page = await list(`limit=2&continue=${changed({ next })}`)
    if (page.status === 200) assert.deepEqual(page.names, ['east/c', 'west/a'], next)
    else assert.equal(page.status, 504, next)
  }
  for (const next of [7, null, {}]) assert.equal((await list(`limit=2&continue=${changed({ next })}`)).status, 400)
})

const STATE = `${PODS}?watch=1&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan`

interface OpenWatch {
  readonly events: readonly string[]
  readonly warning: string
  readonly isEnded: boolean
  /** The last event has it. */
  readonly version: string
  readonly stream: ClientHttp2Stream
}

function openWatch(path = STATE): OpenWatch {
  const stream = h2Open(session, [':path', path, ':authority', 'all'])
  const watch = { events: [] as string[], warning: '', isEnded: false, version: '', stream }
  let rest = ''
  stream.on('response', (headers) => {
    watch.warning = String(headers['warning'] ?? '')
  })
  stream.on('data', (chunk: Buffer) => {
    const lines = (rest + chunk.toString()).split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) {
      const { type, object } = JSON.parse(line)
      const { namespace = '', name = '', annotations = {}, resourceVersion = '' } = object.metadata
      const isEnd = annotations['k8s.io/initial-events-end'] === 'true'
      watch.version = resourceVersion
      watch.events.push(`${type} ${type === 'BOOKMARK' ? isEnd : `${namespace.replace('--default', '')}/${name}`}`)
    }
  })
  stream.on('end', () => {
    watch.isEnded = true
  })
  return watch
}

const SIX = ['east/a', 'east/b', 'east/c', 'west/a', 'west/b', 'west/c'].map((name) => `ADDED ${name}`)

/** It has begun before west was proved to be current, whose proof does not come: on a busy machine, one of several does. */
function earlyWatch(): Promise<OpenWatch> {
  return waitFor('a watch that begins early', async () => {
    west.sendProofs()
    await list('limit=10')
    for (const member of [east, west]) member.pass()
    west.holdProofs()
    const watch = openWatch()
    await waitFor('the state', () => watch.events.length >= SIX.length)
    if (watch.warning === '' && watch.events.length === SIX.length) return watch
    watch.stream.close()
    return undefined
  })
}

test(
  'a watch sends the state before it is proved to be current, and the mark of its end when it is',
  PATIENT,
  async () => {
    await waitFor('all of it', async () => (await list('limit=10')).names.length === 6)
    await waitFor('a proof in time', async () => {
      const watch = await earlyWatch()
      assert.deepEqual(watch.events, SIX)
      west.write('a', 'changed meanwhile')
      await waitFor('a change', () => watch.events.length > SIX.length)
      const { version } = watch
      west.sendProofs()
      await waitFor('the end of the state', () => watch.events.length > SIX.length + 1 || watch.isEnded)
      watch.stream.close()
      if (watch.events.includes('ERROR /')) return false
      assert.deepEqual(watch.events.slice(SIX.length), ['MODIFIED west/a', 'BOOKMARK true'])
      assert.ok((compareResourceVersions(version, watch.version) ?? 1) <= 0)
      return true
    })
  },
)

test('a watch that is not proved in time ends, and the next one says so before it begins', PATIENT, async () => {
  const watch = await earlyWatch()
  await waitFor('its end', () => watch.isEnded)
  assert.deepEqual(watch.events, [...SIX, 'ERROR /'])
  const next = openWatch()
  await waitFor('its state', () => next.events.length === 7)
  assert.deepEqual(next.events, [...SIX, 'BOOKMARK true'])
  assert.match(next.warning, /"west could not be proved to be current"/)
  next.stream.close()
  west.sendProofs()
  await waitFor('a watch without a Warning', async () => {
    const third = openWatch()
    await waitFor('its state', () => third.events.length === 7)
    third.stream.close()
    return third.warning === '' && third.events.at(-1) === 'BOOKMARK true'
  })
})

test('a watch waits for the proof of a member that does not answer, and one without a mark for that of all', async () => {
  for (const member of [east, west]) member.pass()
  for (const path of [
    STATE,
    `${PODS}?watch=1&allowWatchBookmarks=true`,
    STATE.replace('&allowWatchBookmarks=true', ''),
  ]) {
    west.isSilent = path === STATE
    west.holdProofs()
    const watch = openWatch(path)
    await waitFor('its state', () => watch.events.length >= 6)
    assert.ok(watch.warning.includes(WEST_UNPROVED), path)
    watch.stream.close()
  }
})

const SMALL = fc.integer({ min: 0, max: 3 })
const WRITE = fc.record({
  isEast: fc.boolean(),
  kind: fc.constantFrom('write', 'remove', 'pass'),
  name: fc.constantFrom(...'abcdef'),
})

/** The versions of both members in one of all. */
function slotsOf(version: string): readonly string[] {
  return parseVector(version)?.versions ?? []
}

function ownVersions(items: readonly ShownItem[]): string[] {
  return items.map(({ metadata: { namespace, name, resourceVersion } }) => {
    const isEast = namespace.startsWith('east')
    return `${isEast ? 'east' : 'west'}/${name} ${slotsOf(resourceVersion)[isEast ? 0 : 1]}`
  })
}

function statesAt(version: string): string[] {
  const [ofEast = '', ofWest = ''] = slotsOf(version)
  const named = (name: string, pods: readonly string[]): string[] => pods.map((pod) => `${name}/${pod}`)
  return [...named('east', east.podsAt(ofEast)), ...named('west', west.podsAt(ofWest))]
}

test('each list is the state of the versions that it names, and not older than its request', PATIENT, async () => {
  const between = fc.array(fc.array(WRITE, { maxLength: 3 }), { minLength: 1, maxLength: 5 })
  const property = fc.asyncProperty(
    fc.integer({ min: 1, max: 5 }),
    SMALL,
    SMALL,
    between,
    async (limit, ofEast, ofWest, writes) => {
      east.delayMs = ofEast
      west.delayMs = ofWest
      const write = (at: number): void => {
        for (const { isEast, kind, name } of writes[at % writes.length] ?? []) {
          const member = isEast ? east : west
          if (kind === 'pass') member.pass()
          else if (kind === 'write') member.write(name, `note ${at}`)
          else if (member.podsAt(member.version).some((pod) => pod.startsWith(`${name} `))) member.remove(name)
        }
      }
      write(0)
      const [eastAt, westAt] = [east.version, west.version]
      const found: string[] = []
      let version = ''
      for (let next = '', page = 1; page === 1 || next !== ''; page++) {
        const path = `${PODS}?limit=${limit}${next === '' ? '' : `&continue=${next}`}`
        const answer = h2Request(session, [':method', 'GET', ':path', path, ':authority', 'all'])
        // While it is answered.
        if (page % 2 === 0) write(page)
        const { status, body, head } = await answer
        const { items, metadata, message } = JSON.parse(body.toString())
        assert.deepEqual([status, headerValue([...head], 'warning')], [200, undefined], message)
        assert.ok(items.length <= limit)
        assert.ok(version === '' || version === metadata.resourceVersion)
        version = metadata.resourceVersion
        found.push(...ownVersions(items))
        next = metadata.continue ?? ''
        if (page % 2 === 1) write(page)
      }
      assert.deepEqual(found, statesAt(version))
      // What is kept may have the name of an earlier version, of which the state was the same.
      for (const [slot, requestedAt] of [eastAt, westAt].entries()) {
        const named = slotsOf(version)[slot] ?? ''
        const { [slot]: member = east } = [east, west]
        if (Number(named) < Number(requestedAt)) assert.deepEqual(member.podsAt(named), member.podsAt(requestedAt))
      }
    },
  )
  try {
    await fc.assert(property, { numRuns: 100 })
  } finally {
    for (const member of [east, west]) member.delayMs = 0
  }
})
