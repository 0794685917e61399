// Pages of consistent lists of three real clusters, of which nothing says at first that what is kept is current: of one state each, whatever is written between
// them and whichever member goes away, and a watch goes on where they end.

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { WatchLines } from '../harness/clients/watch-lines.ts'
import { startCluster, type TestCluster } from '../harness/clusters/cluster.ts'
import {
  ALL_PODS,
  createPod,
  deletePod,
  federatedClusters,
  federatedUsersCA,
  labelPod,
  prepareMember,
  readThrough,
  type ShownItem,
  watchThrough,
} from '../harness/federation/federated-clusters.ts'
import { startGateway, type TestGateway } from '../harness/gateways/gateway.ts'
import { PATIENT } from '../harness/patience.ts'
import { waitFor } from '../harness/wait.ts'

const NAMES = ['east', 'north', 'west']
const PODS_EACH = 30
const LIMIT = 7

let members: readonly TestCluster[] = []
let gateway: TestGateway
let writes = 0

before(async () => {
  members = await Promise.all(NAMES.map((name) => startCluster({ name, clientCA: federatedUsersCA })))
  await Promise.all(members.map((member) => prepareMember(member, ['alice'])))
  const made = members.flatMap((member) => {
    return Array.from({ length: PODS_EACH }, (_, at) => createPod(member, `pod-${String(at).padStart(2, '0')}`))
  })
  await Promise.all(made)
  gateway = await startGateway({ clusters: federatedClusters(members) })
  await waitFor('what is kept of all', async () => (await readThrough(gateway, ALL_PODS)).status === 200)
}, PATIENT)
after(async () => {
  await gateway?.stop()
  await Promise.all(members.map((member) => member.stop()))
})

/** By the name that it has in all: its uid and its labels. */
type State = ReadonlyMap<string, string>

async function stateOf(): Promise<State> {
  const lists = await Promise.all(members.map(async (one) => ({ one, list: (await one.request(ALL_PODS)).json() })))
  return new Map(
    lists.flatMap(({ one, list }) => list.items.map((item: ShownItem) => keyed(item, `${one.name}--default`))),
  )
}

interface Labelled {
  readonly metadata: { readonly uid?: string; readonly labels?: object }
}

/** What is shown has other versions than the member's: labels say which state an object has. */
function keyed(item: ShownItem & Labelled, namespace: string): [string, string] {
  const { name, uid, labels } = item.metadata
  return [`${namespace}/${name}`, JSON.stringify([uid, labels])]
}

/** Something that is no pod: versions of the cluster grow, and those of its pods do not. */
async function pass(): Promise<void> {
  for (const member of members) {
    const body = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: `other-${++writes}` } }
    assert.equal((await member.request('/api/v1/namespaces/default/configmaps', { method: 'POST', body })).status, 201)
  }
}

interface Pages {
  readonly items: readonly ShownItem[]
  readonly version: string
}

/** @param between called behind each but the last */
async function pages(between: (page: number) => Promise<void>): Promise<Pages> {
  const items: ShownItem[] = []
  const versions = new Set<string>()
  let page = 0
  for (let next = ''; page === 0 || next !== ''; page++) {
    const answer = await readThrough(gateway, `${ALL_PODS}?limit=${LIMIT}${next === '' ? '' : `&continue=${next}`}`)
    assert.equal(answer.status, 200, answer.text)
    assert.equal(answer.headers['warning'], undefined)
    const { items: some, metadata } = answer.json()
    assert.ok(some.length <= LIMIT)
    items.push(...some)
    versions.add(metadata.resourceVersion)
    next = metadata.continue ?? ''
    if (next !== '') await between(page)
  }
  assert.equal(versions.size, 1)
  return { items, version: [...versions][0] ?? '' }
}

const shownState = (items: readonly ShownItem[]): State =>
  new Map(items.map((item) => keyed(item, item.metadata.namespace)))

const sorted = (state: State): [string, string][] => [...state].sort(([a], [b]) => (a < b ? -1 : 1))

/** Applies what a watch brings, as an informer does: nothing comes twice, and nothing that is not there is changed. */
function applied(state: State, watch: Pick<WatchLines, 'events'>): State {
  const now = new Map(state)
  for (const { type, object } of watch.events) {
    const [key, value] = keyed(object, object.metadata.namespace)
    assert.equal(now.has(key), type !== 'ADDED', `${type} ${key}`)
    if (type === 'DELETED') now.delete(key)
    else now.set(key, value)
  }
  return now
}

async function follow(listed: Pages): Promise<void> {
  const watch = watchThrough(gateway, `${ALL_PODS}?watch=1&resourceVersion=${listed.version}`)
  try {
    const wanted = JSON.stringify(sorted(await stateOf()))
    await waitFor('the state of the members', () => {
      return JSON.stringify(sorted(applied(shownState(listed.items), watch))) === wanted
    })
  } finally {
    watch.stop()
  }
}

for (const [what, write] of [
  ['nothing but other objects is written', async () => undefined],
  [
    'pods are made, changed and deleted in all members',
    async (page: number) => {
      for (const member of members) {
        await createPod(member, `new-${++writes}`)
        await labelPod(member, `pod-${20 + (page % 10)}`, `at-${++writes}`)
        await labelPod(member, 'pod-00', `at-${++writes}`)
        await deletePod(member, `new-${writes - 2}`)
      }
    },
  ],
  [
    'pods are deleted in front of the next page and behind it',
    async () => {
      const [member] = members
      if (member === undefined) return
      for (const name of ['pod-01', 'pod-29']) {
        await deletePod(member, name)
        await createPod(member, name)
      }
    },
  ],
] satisfies [string, (page: number) => Promise<void>][]) {
  test(`pages are the state at the first, and a watch brings the rest: ${what}`, PATIENT, async () => {
    await pass()
    const before = await stateOf()
    const listed = await pages(async (page) => {
      await pass()
      await write(page)
    })
    assert.deepEqual(sorted(shownState(listed.items)), sorted(before))
    assert.equal(listed.items.length, before.size, 'each once')
    await follow(listed)
  })
}

test('while pods are written all the time, each list is a state that a watch goes on from', PATIENT, async () => {
  let isOver = false
  const writing = (async () => {
    while (!isOver) {
      for (const member of members) await labelPod(member, `pod-${10 + (++writes % 20)}`, `busy-${writes}`)
      const name = `busy-${++writes}`
      for (const member of members) await createPod(member, name)
      for (const member of members) await deletePod(member, name)
    }
  })()
  const lists: Pages[] = []
  for (let at = 0; at < 5; at++) lists.push(await pages(async () => undefined))
  isOver = true
  await writing
  for (const listed of lists) await follow(listed)
})

test('what was written before a list is in it', PATIENT, async () => {
  for (let at = 0; at < 10; at++) {
    const name = `a-${++writes}`
    const member = members[at % members.length]
    if (member === undefined) continue
    await pass()
    await createPod(member, name)
    const { items } = await pages(async () => undefined)
    assert.ok(shownState(items).has(`${member.name}--default/${name}`), name)
    await deletePod(member, name)
    const { items: later } = await pages(async () => undefined)
    assert.ok(!shownState(later).has(`${member.name}--default/${name}`), name)
  }
})

test('a watch that asks for the state has at its mark what was written before it, and goes on', PATIENT, async () => {
  const query = 'watch=1&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan'
  for (const member of members) {
    const name = `before-${++writes}`
    await pass()
    await createPod(member, name)
    const watch = watchThrough(gateway, `${ALL_PODS}?${query}`)
    const writing = members.map((other) => labelPod(other, 'pod-05', `at-${++writes}`))
    await waitFor('the mark', () => watch.events.some(({ type }) => type === 'BOOKMARK'))
    const { events } = watch
    const state = applied(new Map(), { events: events.slice(0, events.findIndex(isMark)) })
    assert.ok(state.has(`${member.name}--default/${name}`))
    await Promise.all(writing)
    const wanted = JSON.stringify(sorted(await stateOf()))
    await waitFor('the state of the members', () => {
      const changes = { events: watch.events.filter((event) => !isMark(event)) }
      return JSON.stringify(sorted(applied(new Map(), changes))) === wanted
    })
    assert.equal(watch.events.filter(isMark).length, 1)
    watch.stop()
    await deletePod(member, name)
  }
})

const isMark = ({ type }: WatchLines['events'][number]): boolean => type === 'BOOKMARK'

test('tokens that were changed show each pod once and as it was, or are refused', PATIENT, async () => {
  await pass()
  const whole = (await readThrough(gateway, ALL_PODS)).json().items as readonly ShownItem[]
  const known = shownState(whole)
  await pass()
  const first = (await readThrough(gateway, `${ALL_PODS}?limit=${LIMIT}`)).json()
  const token = JSON.parse(Buffer.from(first.metadata.continue, 'base64url').toString())
  const own = JSON.parse(Buffer.from(token.next, 'base64').toString())
  const member = (more: object): string => Buffer.from(JSON.stringify({ ...own, ...more })).toString('base64')
  const changes: readonly object[] = [
    { next: 'x' },
    { next: member({ start: 'default/pod-20\0' }) },
    { next: member({ start: '../../secrets/default/a\0' }) },
    { next: member({ rv: 1 }) },
    { next: member({ rv: own.rv + 100_000 }) },
    { slot: 2 },
    { token: 'default/pod-03' },
    { token: '../x' },
    { rv: token.rv.replace(/.$/, '0') },
    { rv: `${token.rv}99`.slice(0, token.rv.length) },
    { slot: 63 },
  ]
  for (const change of changes) {
    const text = Buffer.from(JSON.stringify({ ...token, ...change })).toString('base64url')
    const { status, json } = await readThrough(gateway, `${ALL_PODS}?limit=${LIMIT}&continue=${text}`)
    if (status === 200) {
      const { items } = json()
      assert.equal(shownState(items).size, items.length)
      for (const [key, value] of shownState(items)) assert.equal(value, known.get(key), JSON.stringify(change))
    } else assert.ok([400, 410, 504].includes(status), `${status} ${JSON.stringify(change)}`)
  }
})

for (const signal of ['SIGSTOP', 'SIGKILL'] as const) {
  test(
    `a member that gets ${signal} between two pages: they are of the first one's state, or say that they are not there`,
    PATIENT,
    async () => {
      const [, , west] = members
      const apiserver = west?.apiservers[0]
      assert.ok(west !== undefined && apiserver !== undefined)
      await pass()
      const before = await stateOf()
      const items: ShownItem[] = []
      let isAway = false
      const back = async (): Promise<void> => {
        if (!isAway) return
        isAway = false
        if (signal === 'SIGSTOP') await apiserver.kill('SIGCONT')
        else await apiserver.restart()
      }
      try {
        let answer = await readThrough(gateway, `${ALL_PODS}?limit=${LIMIT}`)
        await apiserver.kill(signal)
        isAway = true
        for (let next = ''; ; answer = await readThrough(gateway, `${ALL_PODS}?limit=${LIMIT}${next}`)) {
          if (answer.status === 200) {
            const { items: some, metadata } = answer.json()
            items.push(...some)
            if (metadata.continue === undefined) break
            next = `&continue=${metadata.continue}`
            continue
          }
          // It goes on with the same token when the member is back, unless what came and went meanwhile is not known: then the list begins again.
          assert.ok(answer.status === 504 || (answer.status === 410 && signal === 'SIGKILL'), answer.text)
          await back()
          if (answer.status === 504) continue
          items.length = 0
          next = ''
        }
        assert.deepEqual(sorted(shownState(items)), sorted(before))
        assert.equal(items.length, before.size)
      } finally {
        await back()
      }
      await waitFor('no Warning', async () => {
        const { status, headers } = await readThrough(gateway, ALL_PODS)
        return status === 200 && headers['warning'] === undefined
      })
    },
  )
}
