// What a start without its API servers knows of PodProtectors and of the objects of scaling, from what the process before it has kept.

import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { ENDED_SESSIONS } from '../../src/gateway/api/ended-session-kind.ts'
import { Logouts } from '../../src/gateway/controllers/logouts/logouts.ts'
import type { SessionChange } from '../../src/gateway/core/logout/ended-session.ts'
import { LastGoodFile } from '../../src/gateway/io/last-good/file.ts'
import { lastGoodKey } from '../../src/gateway/io/last-good/format.ts'
import { LastGoodKeeper } from '../../src/gateway/io/last-good/keeper.ts'
import { keepFollowed } from '../../src/gateway/io/last-good/kept-follow.ts'
import { EndedSessions } from '../../src/gateway/state/ended-sessions.ts'
import { type JsonObject, nameOf } from '../../src/kit/api/json/json-object.ts'
import { SILENT } from '../../src/kit/api/ports.ts'
import { systemClock } from '../../src/kit/io/world/clock.ts'
import { DEFAULT_PROTECTION_SETTINGS } from '../../src/process/api/protection-settings.ts'
import { POD_PROTECTORS } from '../../src/protection/api/pod-protector-kind.ts'
import type { ProtectionRequest } from '../../src/protection/api/protection.ts'
import { keepProtectors } from '../../src/protection/app/kept-protectors.ts'
import { type ProtectionLedger, startProtectionLedger } from '../../src/protection/controllers/ledger/ledger.ts'
import { SCALE_UP_GUARDS } from '../../src/scale-up-guard/api/scale-up-guard-kind.ts'
import { SCALE_DOWN_POLICIES } from '../../src/scaling/api/scale-down-policy-kind.ts'
import { agreeingClocks } from '../harness/objects/cell-clocks.ts'
import { NO_PROTECTION_EVENTS } from '../harness/objects/ignored-events.ts'
import { MemoryObjects } from '../harness/objects/memory-objects.ts'
import { deletionOf, podOf } from '../harness/objects/protection-requests.ts'
import { waitFor } from '../harness/wait.ts'

function dirOf(t: TestContext): string {
  const dir = mkdtempSync(join(tmpdir(), 'portcullis-states-'))
  t.after(() => rmSync(dir, { recursive: true, force: true }))
  return dir
}

function keeperIn(t: TestContext, dir: string, name: string): LastGoodKeeper {
  const file = new LastGoodFile({ dir, name, key: lastGoodKey(Buffer.alloc(32)), source: 'https://core/', log: SILENT })
  const keeper = new LastGoodKeeper({ file, name, clock: systemClock, log: SILENT, everyMs: 1 })
  t.after(() => keeper.stop())
  return keeper
}

interface Started {
  readonly ledger: ProtectionLedger
  readonly keeper: LastGoodKeeper
  readonly namespaces: (ReadonlySet<string> | undefined)[]
}

function start(t: TestContext, dir: string, store: MemoryObjects, waitMs: number): Started {
  const keeper = keeperIn(t, dir, 'protectors')
  const namespaces: (ReadonlySet<string> | undefined)[] = []
  const ledger = startProtectionLedger({
    client: store,
    settings: DEFAULT_PROTECTION_SETTINGS,
    clock: systemClock,
    clocks: agreeingClocks(systemClock, 'east'),
    random: Math.random,
    log: SILENT,
    events: { ...NO_PROTECTION_EVENTS, following: (current) => keeper.current(current) },
    onNamespaces: (known) => namespaces.push(known),
  })
  const kept = keepProtectors(ledger, keeper, waitMs)
  t.after(async () => {
    kept.stop()
    await ledger.stop()
  })
  return { ledger, keeper, namespaces }
}

function protector(name: string, namespace: string, app: string, available: number): JsonObject {
  const counts = { totalReplicas: available, availableReplicas: available, readyReplicas: available }
  return {
    apiVersion: 'podseidon.kubewharf.io/v1alpha1',
    kind: 'PodProtector',
    metadata: { name, namespace },
    spec: { minAvailable: 1, minReadySeconds: 0, selector: { matchLabels: { app } } },
    status: {
      cells: [{ cellID: 'east', aggregation: { ...counts, scheduledReplicas: available, runningReplicas: available } }],
      summary: {
        totalReplicas: available,
        aggregatedAvailableReplicas: available,
        estimatedAvailableReplicas: available,
      },
    },
  }
}

function request(namespace: string, app: string, more: Partial<ProtectionRequest> = {}): ProtectionRequest {
  const pod = podOf('p', { namespace, labels: { app } })
  return deletionOf('p', { cell: 'east', pod, ...more })
}

test('PodProtectors: who has one is known from before; nothing passes because it was available then', async (t) => {
  const dir = dirOf(t)
  const store = new MemoryObjects()
  // Plenty are available, and a deletion would pass.
  store.put(POD_PROTECTORS, protector('web', 'shop', 'web', 100))
  store.put(POD_PROTECTORS, protector('gone', 'attic', 'old', 100))
  const first = start(t, dir, store, 60_000)
  await waitFor('the protectors on disk', () => first.keeper.restore()?.records.length === 2)
  const records = JSON.stringify(first.keeper.restore()?.records)
  assert.ok(!records.includes('100'), records)
  await first.ledger.stop()
  await first.keeper.stop()
  const before = readFileSync(join(dir, 'protectors'))

  store.away = true
  const second = start(t, dir, store, 1)
  await waitFor('what was kept', () => second.ledger.knowsProtectors)
  assert.ok(second.keeper.status.servedFromMs > 0)
  const { ledger } = second
  assert.deepEqual([...(second.namespaces.at(-1) ?? [])].sort(), ['attic', 'shop'])
  assert.deepEqual(
    ['shop', 'attic', 'other'].map((namespace) => ledger.covers(namespace)),
    [true, true, false],
  )
  const cases: [ProtectionRequest, boolean, string][] = [
    [request('shop', 'web'), false, 'shop/web'],
    [request('shop', 'web', { dryRun: true }), false, 'shop/web'],
    [request('attic', 'old'), false, 'attic/gone'],
    [request('shop', 'none'), true, ''],
    [request('other', 'web'), true, ''],
  ]
  for (const [asked, passes, name] of cases) {
    const [verdict] = await ledger.review([asked])
    assert.equal(verdict?.admitted, passes)
    assert.equal(verdict?.protector, name)
    // An error, so that the failurePolicy decides, and not a refusal.
    if (!passes) assert.deepEqual([verdict?.status, verdict?.reservation], ['Error', undefined])
    if (!passes)
      assert.match(verdict?.message ?? '', /the core cluster has not answered since this gateway was started/)
  }
  // A pod that is terminating passes as ever.
  const [terminating] = await ledger.review([
    { ...request('shop', 'web'), pod: podOf('p', { labels: { app: 'web' }, terminating: true }) },
  ])
  assert.equal(terminating?.admitted, true)
  assert.deepEqual(store.writes, [])
  assert.deepEqual(readFileSync(join(dir, 'protectors')), before)

  store.remove(POD_PROTECTORS, 'gone', 'attic')
  store.comeBack()
  await waitFor('the core cluster', () => ledger.protectors.synced && second.keeper.status.servedFromMs === 0)
  assert.deepEqual(
    ['shop', 'attic'].map((namespace) => ledger.covers(namespace)),
    [true, false],
  )
  assert.equal((await ledger.review([request('shop', 'web')]))[0]?.admitted, true)
  await waitFor('the file', () => second.keeper.restore()?.records.length === 1)
})

test('without a state from before every deletion is an error until the core cluster answers', async (t) => {
  const store = new MemoryObjects()
  store.put(POD_PROTECTORS, protector('web', 'shop', 'web', 100))
  store.away = true
  const { ledger, keeper } = start(t, dirOf(t), store, 1)
  let looked = false
  keeper.restore = () => {
    looked = true
    return undefined
  }
  await waitFor('a look at the disk', () => looked)
  assert.equal(ledger.knowsProtectors, false)
  assert.equal(ledger.covers('other'), true)
  assert.equal((await ledger.review([request('other', 'web')]))[0]?.status, 'Error')
})

test('objects of scaling are told to who follows them, with their status, and replaced when the server answers', async (t) => {
  const dir = dirOf(t)
  const kinds = [SCALE_UP_GUARDS, SCALE_DOWN_POLICIES]
  const store = new MemoryObjects()
  store.put(SCALE_UP_GUARDS, {
    kind: 'ScaleUpGuard',
    metadata: { name: 'g', namespace: 'a' },
    status: { groups: ['backed off'] },
  })
  store.put(SCALE_DOWN_POLICIES, { kind: 'ScaleDownPolicy', metadata: { name: 'p', namespace: 'a' }, spec: {} })
  const heard = (keeper: LastGoodKeeper, waitMs: number) => {
    const client = keepFollowed({ client: store, keeper, kinds, waitMs: () => waitMs })
    const lists = new Map<string, string[][]>()
    for (const kind of kinds) {
      const own: string[][] = []
      lists.set(kind.kind, own)
      const following = client.follow(kind, '', {
        onReplace: (objects) =>
          void own.push(objects.map((object) => `${nameOf(object)} ${JSON.stringify(object['status'])}`)),
        onChange: (type, object) => void own.push([`${type} ${nameOf(object)}`]),
        onState: () => undefined,
      })
      t.after(() => following.stop())
    }
    return lists
  }
  const first = keeperIn(t, dir, 'scale')
  heard(first, 60_000)
  await waitFor('both on disk', () => first.restore()?.records.length === 2)
  await first.stop()
  store.away = true
  const second = keeperIn(t, dir, 'scale')
  const lists = heard(second, 1)
  await waitFor('what was kept', () => [...lists.values()].every(({ length }) => length === 1))
  assert.deepEqual(lists.get('ScaleUpGuard'), [['g {"groups":["backed off"]}']])
  assert.deepEqual(lists.get('ScaleDownPolicy'), [['p undefined']])
  assert.ok(second.status.servedFromMs > 0)
  store.remove(SCALE_DOWN_POLICIES, 'p', 'a')
  store.comeBack()
  await waitFor('the server', () => second.status.servedFromMs === 0)
  assert.deepEqual(lists.get('ScaleDownPolicy')?.at(-1), [])
  await waitFor('the file', () => second.restore()?.records.length === 1)
})

test('a start without its API server knows the logouts that were known before', async (t) => {
  const dir = dirOf(t)
  const store = new MemoryObjects()
  const ended = {
    issuer: 'https://login.test',
    source: 'a'.repeat(64),
    audiences: ['a'],
    sid: 's1',
    sub: 'alice',
    endedSeconds: Math.floor(Date.now() / 1000),
  }
  const session = { ...ended, issuedSeconds: ended.endedSeconds - 60 }
  const begin = (keeper: LastGoodKeeper, waitMs: number): { logouts: Logouts; thread: EndedSessions } => {
    const client = keepFollowed({ client: store, keeper, kinds: [ENDED_SESSIONS], waitMs: () => waitMs })
    const thread = new EndedSessions()
    const publish = ({ id, ended: one }: SessionChange): void => thread.set(id, one)
    const logouts = new Logouts({ client, clock: systemClock, random: Math.random, log: SILENT, publish })
    t.after(() => logouts.stop())
    logouts.follow()
    return { logouts, thread }
  }
  const first = keeperIn(t, dir, 'logouts')
  const before = begin(first, 60_000)
  assert.equal(await before.logouts.end([ended]), 'everywhere')
  await waitFor('it on disk', () => first.restore()?.records.length === 1)
  await first.stop()
  store.away = true
  const second = keeperIn(t, dir, 'logouts')
  const { logouts, thread } = begin(second, 1)
  await waitFor('what was kept', () => logouts.known)
  assert.ok(thread.hasEnded(session))
  // It comes into force here in any case.
  assert.equal(await logouts.end([{ ...ended, sid: 's2' }]), 'failed')
  assert.ok(thread.hasEnded({ ...session, sid: 's2' }))
  store.comeBack()
  await waitFor('the server', () => second.status.servedFromMs === 0)
  for (const sid of ['s1', 's2']) assert.ok(thread.hasEnded({ ...session, sid }), sid)
})
