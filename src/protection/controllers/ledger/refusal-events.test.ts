import assert from 'node:assert/strict'
import { test } from 'node:test'
import { MemoryObjects } from '../../../../test/harness/objects/memory-objects.ts'
import { waitFor } from '../../../../test/harness/wait.ts'
import type { JsonObject } from '../../../kit/api/json/json-object.ts'
import { systemClock } from '../../../kit/io/world/clock.ts'
import { EVENTS } from '../../../kube/api/kinds/event-kind.ts'
import type { ProtectionRequest, ProtectionVerdict } from '../../api/protection.ts'
import { RefusalEvents } from './refusal-events.ts'

const log = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined }
const quickly = { intervalMs: 2 }

function requestOf(uid: string, more: Partial<ProtectionRequest> = {}): ProtectionRequest {
  const facts = {
    terminating: false,
    scheduled: true,
    running: true,
    ready: true,
    readySinceMs: 1,
    startedMs: 1,
    createdMs: 1,
    readyWrittenMs: 1,
  }
  const labels = { app: 'web' }
  const pod = { ...facts, namespace: 'default', name: `pod-${uid}`, uid, resourceVersion: '1', labels }
  return {
    cell: 'east',
    cause: 'DeletePod',
    via: 'filter',
    pod: { ...pod, forceDelete: false, criterion: 'Available' },
    criterion: undefined,
    user: 'alice',
    dryRun: false,
    shadow: false,
    timeoutMs: 1_000,
    ...more,
  }
}

function verdictOf(status: ProtectionVerdict['status'], more: Partial<ProtectionVerdict> = {}): ProtectionVerdict {
  return {
    status,
    admitted: false,
    overridden: '',
    protector: 'default/web',
    message: 'PodProtector default/web reports too few available replicas',
    causes: [],
    retryAfterSeconds: 0,
    freePass: false,
    reservation: undefined,
    ...more,
  }
}

function eventsOf(core: MemoryObjects, worker: MemoryObjects | undefined, objectMs: number): RefusalEvents {
  const pace = { objectMs, spacingMs: 1 }
  const parts = { core, worker: () => worker, protectorUid: () => 'ppr-uid-1234', replica: 'gw-0', pace }
  return new RefusalEvents({ ...parts, clock: systemClock, log })
}

function eventsIn(objects: MemoryObjects): JsonObject[] {
  return objects.all(EVENTS)
}

test('a refusal is told on the PodProtector and on the pod, once, and then it counts', async () => {
  const [core, worker] = [new MemoryObjects(), new MemoryObjects()]
  const events = eventsOf(core, worker, 5)
  for (let i = 0; i < 50; i++) events.reviewed(requestOf('aaaaaaaa-1'), verdictOf('Rejected'))
  await waitFor('both are written', () => eventsIn(core).length + eventsIn(worker).length === 2, quickly)
  events.reviewed(requestOf('aaaaaaaa-1', { cause: 'EvictPod' }), verdictOf('Rejected'))
  await waitFor('both count', () => [core, worker].every((one) => eventsIn(one)[0]?.['count'] === 51), quickly)
  const [event] = eventsIn(worker)
  assert.equal((event?.['metadata'] as { name: string }).name, 'pod-aaaaaaaa-1.poddeletionrefused.aaaaaaaa')
  assert.deepEqual(
    [event?.['reason'], event?.['type'], event?.['message']],
    [
      'PodDeletionRefused',
      'Warning',
      'eviction by alice is refused: PodProtector default/web reports too few available replicas',
    ],
  )
  assert.deepEqual(eventsIn(core)[0]?.['involvedObject'], {
    apiVersion: 'podseidon.kubewharf.io/v1alpha1',
    kind: 'PodProtector',
    namespace: 'default',
    name: 'web',
    uid: 'ppr-uid-1234',
  })
  await events.stop()
})

test('only what is really refused is told', async () => {
  const core = new MemoryObjects()
  const events = eventsOf(core, undefined, 5)
  events.reviewed(requestOf('a'), verdictOf('AdmittedAll', { admitted: true }))
  events.reviewed(requestOf('b'), verdictOf('Error'))
  events.reviewed(requestOf('c', { dryRun: true }), verdictOf('Rejected'))
  events.reviewed(requestOf('d', { shadow: true }), verdictOf('Rejected', { overridden: 'shadow' }))
  events.reviewed(requestOf('e'), verdictOf('RetryAdvised'))
  await waitFor('one is written', () => eventsIn(core).length === 1, quickly)
  assert.equal(eventsIn(core)[0]?.['reason'], 'PodDeletionDelayed')
  assert.match(String(eventsIn(core)[0]?.['message']), /deletion of pod pod-e in cell east by alice/)
  await events.stop()
})

test('an object is written at most once in its interval', async () => {
  const core = new MemoryObjects()
  const events = eventsOf(core, undefined, 3_600_000)
  for (let i = 0; i < 20; i++) {
    events.reviewed(requestOf('a'), verdictOf('Rejected'))
    events.reviewed(requestOf('a'), verdictOf('RetryAdvised'))
    await new Promise((resolve) => setImmediate(resolve))
  }
  await waitFor('both reasons are written', () => eventsIn(core).length === 2, quickly)
  assert.equal(core.writes.length, 2)
  await events.stop()
  assert.equal(core.writes.length, 2)
})

test('an Event of another replica goes on counting; one that its server has dropped begins again', async () => {
  const core = new MemoryObjects()
  const [mine, other] = [eventsOf(core, undefined, 1), eventsOf(core, undefined, 1)]
  mine.reviewed(requestOf('a'), verdictOf('Rejected'))
  await waitFor('one', () => eventsIn(core)[0]?.['count'] === 1, quickly)
  other.reviewed(requestOf('a'), verdictOf('Rejected'))
  await waitFor('two', () => eventsIn(core)[0]?.['count'] === 2, quickly)
  mine.reviewed(requestOf('a'), verdictOf('Rejected'))
  await waitFor('three', () => eventsIn(core)[0]?.['count'] === 3, quickly)
  core.remove(EVENTS, (eventsIn(core)[0]?.['metadata'] as { name: string }).name, 'default')
  mine.reviewed(requestOf('a'), verdictOf('Rejected'))
  await waitFor('again', () => eventsIn(core).length === 1, quickly)
  await Promise.all([mine.stop(), other.stop()])
})

test('a server that is away costs a count, and nothing else', async () => {
  const [core, worker] = [new MemoryObjects(), new MemoryObjects()]
  worker.away = true
  const events = eventsOf(core, worker, 5)
  events.reviewed(requestOf('a'), verdictOf('Rejected'))
  await waitFor('the failure is counted', () => events.failures === 1, quickly)
  await waitFor('the other is written', () => eventsIn(core).length === 1, quickly)
  await events.stop()
})

test('an object that was told lately does not hold up another', async () => {
  const core = new MemoryObjects()
  const events = eventsOf(core, undefined, 3_600_000)
  events.reviewed(requestOf('a'), verdictOf('Rejected'))
  await waitFor('the first', () => eventsIn(core).length === 1, quickly)
  events.reviewed(requestOf('a'), verdictOf('Rejected'))
  events.reviewed(requestOf('b'), verdictOf('Rejected', { protector: 'default/other' }))
  await waitFor('the other', () => eventsIn(core).length === 2, quickly)
  await events.stop()
})
