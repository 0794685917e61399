// The ledger of pod protection on objects in memory: verdicts, writes, rollback, and two replicas that race.

import assert from 'node:assert/strict'
import { afterEach, mock, test } from 'node:test'
import type { JsonObject } from '../../src/kit/api/json/json-object.ts'
import { systemClock } from '../../src/kit/io/world/clock.ts'
import type { ResourceKind } from '../../src/kube/api/resource-kind.ts'
import { statusError } from '../../src/kube/api/status.ts'
import { statusErrorOf } from '../../src/kube/io/client-errors.ts'
import { DEFAULT_PROTECTION_SETTINGS, type ProtectionSettings } from '../../src/process/api/protection-settings.ts'
import type { PodProtector } from '../../src/protection/api/pod-protector.ts'
import { POD_PROTECTORS } from '../../src/protection/api/pod-protector-kind.ts'
import type { PodFacts, ProtectionRequest, ProtectionVerdict } from '../../src/protection/api/protection.ts'
import { type ProtectionLedger, startProtectionLedger } from '../../src/protection/controllers/ledger/ledger.ts'
import type { ProtectionEvents } from '../../src/protection/core/requests/protection-events.ts'
import { agreeingClocks } from '../harness/objects/cell-clocks.ts'
import { NO_PROTECTION_EVENTS } from '../harness/objects/ignored-events.ts'
import { MemoryObjects } from '../harness/objects/memory-objects.ts'
import { deletionOf, podOf } from '../harness/objects/protection-requests.ts'
import { waitFor } from '../harness/wait.ts'

const QUICK: ProtectionSettings = {
  ...DEFAULT_PROTECTION_SETTINGS,
  batchIntervalMs: 5,
  clockSkewMs: 5_000,
  retryBackoffMs: 2,
  retryJitterMs: 4,
}
const silent = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined }

const ledgers: ProtectionLedger[] = []
afterEach(async () => {
  for (const ledger of ledgers.splice(0)) await ledger.stop()
})

/** Objects of which writes can go wrong as they do in life. */
class Store extends MemoryObjects {
  /** What comes of the next writes: before they are made, or (`lost`) only their answers. */
  readonly faults: ('lost' | 'hangs' | Error)[] = []

  override async update(kind: ResourceKind, object: JsonObject, subresource?: 'status'): Promise<JsonObject> {
    const fault = this.faults.shift()
    if (fault === 'hangs') return new Promise(() => undefined)
    if (fault instanceof Error) throw fault
    const written = await super.update(kind, object, subresource)
    if (fault === 'lost') throw new Error('read ECONNRESET')
    return written
  }

  protector(name: string, spec: Partial<PodProtector['spec']>, available: number): void {
    const cell = { cellID: 'east', aggregation: countsOf(available) }
    const summary = {
      totalReplicas: available,
      aggregatedAvailableReplicas: available,
      estimatedAvailableReplicas: available,
    }
    this.put(POD_PROTECTORS, {
      apiVersion: 'podseidon.kubewharf.io/v1alpha1',
      kind: 'PodProtector',
      metadata: { name, namespace: 'default' },
      spec: { minAvailable: 0, minReadySeconds: 0, selector: { matchLabels: { app: 'web' } }, ...spec },
      status: { cells: [cell], summary },
    })
  }

  /** podUIDs in the histories of a protector. */
  reserved(name: string): string[] {
    const { status } = this.find(POD_PROTECTORS, name, 'default') as unknown as PodProtector
    const buckets = status?.cells.flatMap((cell) => cell.admissionHistory?.buckets ?? []) ?? []
    return buckets.flatMap(({ podUID = '', podUIDs = [] }) => [...podUIDs, podUID].filter((uid) => uid !== '')).sort()
  }

  get updates(): number {
    return this.writes.filter((write) => write.startsWith('update/status')).length
  }
}

function countsOf(available: number) {
  return {
    totalReplicas: available,
    availableReplicas: available,
    readyReplicas: available,
    scheduledReplicas: available,
    runningReplicas: available,
    lastEventTime: '2026-01-01T00:00:00.000000Z',
  }
}

async function start(
  store: MemoryObjects,
  { settings = QUICK, events = {} }: { settings?: ProtectionSettings; events?: Partial<ProtectionEvents> } = {},
): Promise<ProtectionLedger> {
  const ledger = startProtectionLedger({
    client: store,
    settings,
    clock: systemClock,
    clocks: agreeingClocks(systemClock, 'east'),
    random: Math.random,
    log: silent,
    events: { ...NO_PROTECTION_EVENTS, ...events },
  })
  ledgers.push(ledger)
  await waitFor('the ledger knows the protectors', () => ledger.protectors.synced, { intervalMs: 5 })
  return ledger
}

function requestOf(uid: string, pod: Partial<PodFacts> = {}, more: Partial<ProtectionRequest> = {}): ProtectionRequest {
  const facts = { namespace: 'default', uid, resourceVersion: '7', labels: { app: 'web' }, ...pod }
  const asked = { cell: 'east', user: 'alice', timeoutMs: 5_000, pod: podOf(`pod-${uid}`, facts) }
  return deletionOf(`pod-${uid}`, { ...asked, ...more })
}

async function reviewOne(ledger: ProtectionLedger, request: ProtectionRequest): Promise<ProtectionVerdict> {
  const [verdict] = await ledger.review([request])
  assert.ok(verdict !== undefined)
  return verdict
}

/** Everything that is on its way is written. */
async function quiet(ledger: ProtectionLedger): Promise<void> {
  await ledger.stop()
}

test('deletions within the quota are reserved before they are admitted; others are refused with the numbers', async () => {
  const store = new Store()
  store.protector('web', { minAvailable: 5 }, 7)
  const ledger = await start(store)
  const first = await reviewOne(ledger, requestOf('a'))
  assert.deepEqual([first.status, first.admitted, first.freePass], ['AdmittedAll', true, false])
  assert.deepEqual(store.reserved('web'), ['a'])
  assert.equal(first.reservation?.holds.length, 1)
  await reviewOne(ledger, requestOf('b'))
  const writes = store.updates
  const third = await reviewOne(ledger, requestOf('c'))
  assert.equal(third.status, 'RetryAdvised')
  assert.equal(
    third.message,
    'PodProtector default/web has full admission buffer and is temporarily unable to admit pod deletion: 5 required, 7 counted, 2 being deleted',
  )
  assert.deepEqual([third.protector, third.retryAfterSeconds, third.overridden], ['default/web', 1, ''])
  assert.equal(third.causes[0]?.reason, 'PodDeletionDelayed')
  assert.equal(store.updates, writes, 'a refusal writes nothing')
})

test('too few: refused for good, with the criterion that counts', async () => {
  const store = new Store()
  store.protector('web', { minAvailable: 5 }, 5)
  const ledger = await start(store)
  const verdict = await reviewOne(ledger, requestOf('a', { criterion: 'Ready' }, { criterion: 'Running' }))
  assert.equal(verdict.status, 'Rejected')
  assert.equal(verdict.retryAfterSeconds, 0)
  assert.equal(
    verdict.message,
    'PodProtector default/web reports too few running replicas to admit pod deletion: 5 required, 5 counted, 0 being deleted',
  )
})

test('what needs no quota: unmatched, terminating, unready, still unavailable; the last two are noted', async () => {
  const store = new Store()
  store.protector('web', { minAvailable: 5, minReadySeconds: 600 }, 5)
  store.protector('low', { minAvailable: 6, minReadySeconds: 60, selector: { matchLabels: { app: 'low' } } }, 5)
  const ledger = await start(store)
  const ageOf = (seconds: number): Partial<PodFacts> => ({ createdMs: Date.now() - seconds * 1000 })
  const verdicts = await ledger.review([
    requestOf('a', { labels: { app: 'other' } }),
    requestOf('b', { terminating: true }),
    requestOf('c', { ready: false }),
    requestOf('d', ageOf(10)),
    requestOf('e', ageOf(650)),
    requestOf('f', { ready: false, criterion: 'Running' }),
    // It may be available before it is deleted: it is in no count yet, and none may be missing.
    requestOf('g', ageOf(590)),
    requestOf('h', { ...ageOf(1), labels: { app: 'low' } }),
  ])
  assert.deepEqual(
    verdicts.map(({ status, freePass }) => [status, freePass]),
    [
      ['Unmatched', false],
      ['AlreadyTerminating', false],
      ['AlreadyUnready', true],
      ['StillUnavailable', true],
      ['Rejected', false],
      ['Rejected', false],
      ['StillUnavailable', false],
      ['Rejected', false],
    ],
  )
  await waitFor('notes are written', () => store.reserved('web').join() === 'c,d,g', {
    intervalMs: 5,
    timeoutMs: 10_000,
  })
})

test('the same pod once more: charged once, whichever client asks; a dry run writes nothing', async () => {
  const store = new Store()
  store.protector('web', { minAvailable: 5 }, 7)
  const ledger = await start(store)
  const dry = await reviewOne(ledger, requestOf('x', {}, { dryRun: true }))
  assert.deepEqual([dry.status, dry.reservation], ['AdmittedAll', undefined])
  assert.equal(store.updates, 0)
  const twice = await ledger.review([requestOf('a'), requestOf('a')])
  assert.deepEqual(
    twice.map(({ admitted }) => admitted),
    [true, true],
  )
  assert.equal(twice.filter(({ reservation }) => reservation !== undefined).length, 1)
  const again = await reviewOne(ledger, requestOf('a', {}, { via: 'webhook' }))
  assert.deepEqual([again.status, again.reservation], ['AlreadyAdmitted', undefined])
  assert.deepEqual(store.reserved('web'), ['a'])
})

test('a collection is one batch for each protector, and no more of it passes than there is room for', async () => {
  const store = new Store()
  store.protector('web', { minAvailable: 5 }, 25)
  const ledger = await start(store)
  const verdicts = await ledger.review(Array.from({ length: 20 }, (_, i) => requestOf(`p${i}`)))
  assert.equal(verdicts.filter(({ admitted }) => admitted).length, 20)
  assert.equal(store.updates, 1)
  const more = await ledger.review(Array.from({ length: 20 }, (_, i) => requestOf(`q${i}`)))
  assert.equal(more.filter(({ admitted }) => admitted).length, 0)
})

test('shadow and force-delete are recorded, say no, and let pass', async () => {
  const store = new Store()
  store.protector('web', { minAvailable: 5 }, 5)
  const ledger = await start(store)
  const shadow = await reviewOne(ledger, requestOf('a', {}, { shadow: true }))
  assert.deepEqual([shadow.status, shadow.admitted, shadow.overridden], ['Rejected', false, 'shadow'])
  assert.equal(shadow.reservation?.holds.length, 1)
  const forced = await reviewOne(ledger, requestOf('b', { forceDelete: true }))
  assert.deepEqual([forced.admitted, forced.overridden], [false, 'force-delete'])
  assert.deepEqual(store.reserved('web'), ['a', 'b'])
})

test('several protectors: all or none; one that already refuses costs the others no write', async () => {
  const store = new Store()
  store.protector('a', { minAvailable: 1 }, 10)
  store.protector('b', { minAvailable: 10 }, 10)
  const ledger = await start(store)
  const refused = await reviewOne(ledger, requestOf('x'))
  assert.deepEqual([refused.status, refused.protector], ['Rejected', 'default/b'])
  assert.equal(store.updates, 0)
})

test('several protectors: when one refuses in the end, or fails, the reservations in the others are released', async () => {
  for (const fault of ['refuses', 'fails'] as const) {
    const store = new Store()
    store.protector('a', { minAvailable: 1 }, 10)
    store.protector('b', { minAvailable: 1 }, 10)
    let released = 0
    const onReleased = (count: number): void => {
      released += count
    }
    const ledger = await start(store, { events: { released: onReleased } })
    if (fault === 'fails') {
      const update = store.update.bind(store)
      store.update = (kind, object, subresource) =>
        (object['metadata'] as { name: string }).name === 'b'
          ? Promise.reject(statusError('Forbidden', 'not allowed'))
          : update(kind, object, subresource)
    } else {
      // Between reading and writing b lost all its pods: the write meets a conflict, and what is read then says no.
      const update = store.update.bind(store)
      store.update = (kind, object, subresource) => {
        if ((object['metadata'] as { name: string }).name === 'b' && released === 0)
          store.protector('b', { minAvailable: 10 }, 10)
        return update(kind, object, subresource)
      }
    }
    const verdict = await reviewOne(ledger, requestOf('x'))
    assert.equal(verdict.status, fault === 'fails' ? 'Error' : 'Rejected')
    assert.equal(verdict.reservation, undefined)
    await quiet(ledger)
    assert.equal(released, 1)
    assert.deepEqual(store.reserved('a'), [])
  }
})

test('a conflict reads again and retries; what others have taken is seen', async () => {
  const store = new Store()
  store.protector('web', { minAvailable: 5 }, 7)
  const results: string[] = []
  const ledger = await start(store, { events: { executed: (_key, _size, result) => void results.push(result) } })
  store.beforeUpdate = () => store.protector('web', { minAvailable: 6 }, 7)
  const verdict = await reviewOne(ledger, requestOf('a'))
  assert.equal(verdict.status, 'AdmittedAll')
  assert.deepEqual(results, ['conflict', 'written'])
  assert.notEqual((await reviewOne(ledger, requestOf('b'))).admitted, true)
})

test('two replicas on one store race for the rest of the quota: together they admit no more than that', async () => {
  for (let round = 0; round < 5; round++) {
    const store = new Store()
    store.protector('web', { minAvailable: 5 }, 15)
    const replicas = [await start(store), await start(store)]
    const verdicts = await Promise.all(
      Array.from({ length: 40 }, (_, i) => reviewOne(replicas[i % 2] as ProtectionLedger, requestOf(`p${i}`))),
    )
    assert.equal(verdicts.filter(({ admitted }) => admitted).length, 10)
    assert.equal(store.reserved('web').length, 10)
    const passed = verdicts.flatMap(({ reservation }) => reservation ?? [])
    assert.deepEqual(passed.map(({ uid }) => uid).sort(), store.reserved('web'))
  }
})

test('release gives back what upstream did not do, once', async () => {
  const store = new Store()
  store.protector('web', { minAvailable: 5 }, 7)
  const ledger = await start(store)
  const { reservation } = await reviewOne(ledger, requestOf('a'))
  assert.ok(reservation !== undefined)
  // The webhook has admitted it once more: the reservation is not ours alone.
  await reviewOne(ledger, requestOf('a', {}, { via: 'webhook' }))
  ledger.release([reservation])
  const other = await reviewOne(ledger, requestOf('b'))
  ledger.release(other.reservation === undefined ? [] : [other.reservation])
  await quiet(ledger)
  assert.deepEqual(store.reserved('web'), ['a'])
})

test('the core store is unreachable: an error for those that need it, none for others', async () => {
  const store = new Store()
  store.protector('web', { minAvailable: 5 }, 7)
  const ledger = await start(store)
  store.away = true
  const [needs, terminating, unready, full] = await ledger.review([
    requestOf('a'),
    requestOf('b', { terminating: true }),
    requestOf('c', { ready: false }),
    requestOf('d', { labels: {} }),
  ])
  assert.deepEqual([needs?.status, needs?.admitted, needs?.overridden], ['Error', false, ''])
  assert.match(needs?.message ?? '', /default\/web cannot be written: connect ECONNREFUSED/)
  assert.deepEqual([terminating?.admitted, unready?.admitted, full?.status], [true, true, 'Unmatched'])
  assert.equal((await reviewOne(ledger, requestOf('e', {}, { shadow: true }))).overridden, 'shadow')
  store.comeBack()
  assert.equal((await reviewOne(ledger, requestOf('f'))).status, 'AdmittedAll')
  await waitFor('the note is written when the store is back', () => store.reserved('web').join() === 'c,f', {
    intervalMs: 5,
    timeoutMs: 10_000,
  })
})

test('a 404 that names no PodProtector does not count: the server may not be an API server, or have lost the CRD', async () => {
  const store = new Store()
  store.protector('web', { minAvailable: 5 }, 7)
  const ledger = await start(store)
  const notFound = statusErrorOf(404, '<html>404</html>', '')
  store.faults.push(notFound)
  assert.deepEqual(pick(await reviewOne(ledger, requestOf('a'))), ['Error', false])
  // After a write without an answer it is read first, perhaps before the next request.
  const read = mock.method(store, 'get', () => Promise.reject(notFound))
  store.faults.push('lost')
  assert.deepEqual(pick(await reviewOne(ledger, requestOf('b'))), ['Error', false])
  assert.deepEqual(pick(await reviewOne(ledger, requestOf('c'))), ['Error', false])
  read.mock.restore()
})

function pick({ status, admitted }: ProtectionVerdict): readonly [string, boolean] {
  return [status, admitted]
}

test('a write without an answer that happened all the same is taken back', async () => {
  const store = new Store()
  store.protector('web', { minAvailable: 5 }, 7)
  const ledger = await start(store)
  store.faults.push('lost')
  assert.equal((await reviewOne(ledger, requestOf('a'))).status, 'Error')
  assert.equal(store.updates, 1)
  await quiet(ledger)
  assert.deepEqual(store.reserved('web'), [])
})

test('a write that hangs delays those that wait for it, not later ones', async () => {
  const store = new Store()
  store.protector('web', { minAvailable: 5 }, 7)
  const ledger = await start(store)
  store.faults.push('hangs')
  const verdict = await reviewOne(ledger, requestOf('a', {}, { timeoutMs: 30 }))
  assert.match(verdict.message, /default\/web could not be written within 0.03 s/)
  assert.equal((await reviewOne(ledger, requestOf('b'))).status, 'AdmittedAll')
})

test('a protector that is deleted while a deletion is under way no longer protects; a new one of the same name does', async () => {
  const store = new Store()
  store.protector('web', { minAvailable: 5 }, 7)
  const ledger = await start(store)
  store.beforeUpdate = () => store.remove(POD_PROTECTORS, 'web', 'default')
  const gone = await reviewOne(ledger, requestOf('a'))
  assert.deepEqual([gone.status, gone.admitted, gone.reservation], ['Unmatched', true, undefined])
  store.protector('web', { minAvailable: 5 }, 7)
  const { reservation } = await reviewOne(ledger, requestOf('a'))
  assert.ok(reservation !== undefined)
  store.beforeUpdate = () => {
    store.remove(POD_PROTECTORS, 'web', 'default')
    store.protector('web', { minAvailable: 7 }, 7)
  }
  assert.equal((await reviewOne(ledger, requestOf('b'))).status, 'Rejected')
  ledger.release([reservation])
  await quiet(ledger)
  assert.deepEqual(store.reserved('web'), [])
})

test('until the protectors are known nothing that may need them passes', async () => {
  const store = new Store()
  let follower: { onReplace(objects: readonly JsonObject[]): void } | undefined
  store.follow = (_kind, _namespace, events) => {
    follower = events
    return { stop: () => Promise.resolve() }
  }
  const namespaces: (readonly string[])[] = []
  const ledger = startProtectionLedger({
    client: store,
    settings: QUICK,
    clock: systemClock,
    clocks: agreeingClocks(systemClock, 'east'),
    random: Math.random,
    log: silent,
    events: NO_PROTECTION_EVENTS,
    onNamespaces: (known) => void namespaces.push([...(known ?? [])]),
  })
  ledgers.push(ledger)
  assert.equal(ledger.covers('anything'), true)
  const verdicts = await ledger.review([
    requestOf('a'),
    requestOf('b', { ready: false }),
    requestOf('c', { labels: {} }),
  ])
  assert.deepEqual(
    verdicts.map(({ status }) => status),
    ['Error', 'AlreadyUnready', 'Error'],
  )
  store.protector('web', {}, 1)
  follower?.onReplace(store.all(POD_PROTECTORS))
  assert.deepEqual(namespaces, [['default']])
  assert.deepEqual([ledger.covers('default'), ledger.covers('other')], [true, false])
})

test('a PodProtector that cannot be read stops no other', async () => {
  const store = new Store()
  store.protector('good', { minAvailable: 5 }, 7)
  const faults: number[] = []
  const ledger = await start(store, { events: { malformed: (count) => void faults.push(count) } })
  store.protector(
    'bad',
    { selector: { matchExpressions: [{ key: 'app', operator: 'in' as 'In', values: ['web'] }] } },
    7,
  )
  store.put(POD_PROTECTORS, { metadata: { name: 'worse', namespace: 'default' }, spec: 'x', status: [] })
  store.put(POD_PROTECTORS, { metadata: { name: '__proto__', namespace: 'default' } })
  assert.equal(faults.at(-1), 3)
  assert.match(ledger.protectors.get('default/bad')?.fault ?? '', /spec.selector cannot be read/)
  assert.equal((await reviewOne(ledger, requestOf('a'))).status, 'AdmittedAll')
  // A mistake in a selector that was good leaves the good one in force.
  store.protector('good', { minAvailable: 7, selector: { matchExpressions: [{ key: '', operator: 'Exists' }] } }, 7)
  assert.equal((await reviewOne(ledger, requestOf('b'))).status, 'Rejected')
  store.protector('good', { minAvailable: 'x' as unknown as number }, 7)
  assert.equal((await reviewOne(ledger, requestOf('c'))).status, 'Rejected')
})

test('2,000 deletions that come one by one cost few writes', async () => {
  const store = new Store()
  store.protector('web', { minAvailable: 100 }, 5_000)
  const ledger = await start(store, { settings: { ...QUICK, batchIntervalMs: 20 } })
  const verdicts: Promise<ProtectionVerdict>[] = []
  for (let i = 0; i < 2_000; i++) {
    verdicts.push(reviewOne(ledger, requestOf(`p${i}`)))
    if (i % 100 === 0) await new Promise((resolve) => setImmediate(resolve))
  }
  assert.ok((await Promise.all(verdicts)).every(({ admitted }) => admitted))
  assert.ok(store.updates <= 40, `${store.updates} writes`)
})

test('stop: waiting and later callers get an error', async () => {
  const store = new Store()
  store.protector('web', { minAvailable: 5 }, 7)
  const ledger = await start(store)
  store.faults.push('hangs')
  const waiting = reviewOne(ledger, requestOf('a'))
  await ledger.stop()
  assert.match((await waiting).message, /the gateway is shutting down/)
  assert.equal((await reviewOne(ledger, requestOf('b'))).status, 'Error')
})

test('a stalled watch admits nothing too much, and makes nothing fail', async () => {
  const store = new Store()
  store.protector('web', { minAvailable: 5 }, 8)
  const ledger = await start(store)
  const { follow } = store
  store.follow = (kind, namespace, events) =>
    follow.call(store, kind, namespace, { ...events, onChange: () => undefined })
  const behind = await start(store)
  assert.equal((await reviewOne(ledger, requestOf('a'))).admitted, true)
  assert.equal((await reviewOne(ledger, requestOf('b'))).admitted, true)
  // What it knows is out of date: it meets a conflict, reads, and knows more than before.
  assert.equal((await reviewOne(behind, requestOf('c'))).admitted, true)
  assert.equal((await reviewOne(behind, requestOf('d'))).admitted, false)
  assert.deepEqual(store.reserved('web'), ['a', 'b', 'c'])
})

test('a reservation of a PodProtector is nothing to another one of its name, even if that remembers it', async () => {
  const store = new Store()
  store.protector('web', { minAvailable: 5 }, 7)
  const ledger = await start(store)
  const { reservation } = await reviewOne(ledger, requestOf('a'))
  const restored = store.find(POD_PROTECTORS, 'web', 'default')
  assert.ok(restored !== undefined && reservation !== undefined)
  store.remove(POD_PROTECTORS, 'web', 'default')
  store.put(POD_PROTECTORS, { ...restored, metadata: { name: 'web', namespace: 'default', uid: 'another' } })
  ledger.release([reservation])
  await quiet(ledger)
  assert.deepEqual(store.reserved('web'), ['a'])
})

test('those that arrived last are admitted, and none waits', async () => {
  const store = new Store()
  store.protector('web', { minAvailable: 4 }, 6)
  const ledger = await start(store)
  const verdicts = await ledger.review([requestOf('first'), requestOf('a'), requestOf('b')])
  assert.deepEqual(
    verdicts.map(({ admitted }) => admitted),
    [false, true, true],
  )
})
