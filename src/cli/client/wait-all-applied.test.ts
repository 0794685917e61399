// Waiting for the statuses of many clusters beside a watch: it says when, and it may be late, hang, be refused, or have a gap.

import assert from 'node:assert/strict'
import { beforeEach, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { MemoryObjects } from '../../../test/harness/objects/memory-objects.ts'
import { waitFor } from '../../../test/harness/wait.ts'
import { UPSTREAM_CLUSTERS } from '../../gateway/api/upstream-cluster-kind.ts'
import { replicaLease } from '../../gateway/core/status/gateways.ts'
import { type JsonObject, nameOf } from '../../kit/api/json/json-object.ts'
import { metaMicroTime } from '../../kit/core/text/meta-time.ts'
import { LEASES } from '../../kube/api/kinds/lease-kind.ts'
import type { FollowChoice, FollowEvents, Following } from '../../kube/api/object-client.ts'
import { FollowedClusters } from './followed-clusters.ts'
import { type AppliedCluster, waitAllApplied } from './wait-all-applied.ts'

const NAMES = ['a', 'b']
const PATIENT_MS = 60_000

/** Its watches say what the test lets them say. */
class Watched extends MemoryObjects {
  watch: FollowEvents | undefined
  from: string | undefined
  watchers = 0
  lists = 0
  /** That have been answered. */
  leaseLists = 0

  override async list(...given: Parameters<MemoryObjects['list']>): ReturnType<MemoryObjects['list']> {
    if (given[0] === UPSTREAM_CLUSTERS) this.lists++
    const found = await super.list(...given)
    if (given[0] === LEASES) this.leaseLists++
    return found
  }

  override follow(_kind: unknown, _namespace: string, events: FollowEvents, choice: FollowChoice = {}): Following {
    this.watch = events
    this.from = choice.from
    this.watchers++
    return {
      stop: async () => {
        this.watchers--
      },
    }
  }

  /** The replica has it in force if `applied`, a generation, is not lower than its own. */
  cluster(name: string, generation: number, applied: number, uid = 'first'): JsonObject {
    const gateways = [{ name: 'gw-1', threads: 2, threadsApplied: 2, observedGeneration: applied }]
    const resourceVersion = `${uid === 'first' ? '' : '9'}${generation}${applied}`
    return { metadata: { name, uid, generation, resourceVersion }, status: { gateways } }
  }
}

let server: Watched
let followed: FollowedClusters

/** Both clusters have been written; the replica has in force what was before. */
beforeEach(async () => {
  server = new Watched()
  server.put(LEASES, replicaLease('gw-1', 'portcullis-system', metaMicroTime(Date.now())))
  const items = NAMES.map((name) => server.cluster(name, 1, 1))
  for (const item of items) server.put(UPSTREAM_CLUSTERS, item)
  followed = new FollowedClusters(server, { items, resourceVersion: '7' })
  for (const name of NAMES) followed.answered(server.cluster(name, 2, 1))
})

function wait(timeoutMs = PATIENT_MS, listsFirst = false): Promise<ReadonlyMap<string, AppliedCluster>> {
  return waitAllApplied({ client: server, timeoutMs, now: Date.now, pollMs: 1, followed, listsFirst }, NAMES)
}

function faults(found: ReadonlyMap<string, AppliedCluster>): Readonly<Record<string, string>> {
  return Object.fromEntries(Array.from(found, ([name, { fault }]) => [name, fault]))
}

/** In the store of the server, which only lists show. */
function store(name: string, generation: number, applied: number): void {
  const object = server.cluster(name, generation, applied)
  const before = server.find(UPSTREAM_CLUSTERS, name)
  server.put(UPSTREAM_CLUSTERS, { ...before, spec: { generation }, status: object['status'] })
}

test('a watch that begins where the clusters were listed says when all have it, and no list is asked for', async () => {
  assert.equal(server.from, '7')
  server.watch?.onState(true, '')
  const waiting = wait()
  for (const name of NAMES) {
    await sleep(5)
    server.watch?.onChange('MODIFIED', server.cluster(name, 2, 1))
    server.watch?.onChange('MODIFIED', server.cluster(name, 2, 2))
  }
  assert.deepEqual([faults(await waiting), server.lists], [{ a: '', b: '' }, 0])
  await followed.stop()
  assert.equal(server.watchers, 0)
})

test('what the watch knew before the write is not taken for the outcome of the write, not even from a list after a gap', async () => {
  server.watch?.onState(true, '')
  const waiting = wait()
  await sleep(5)
  // Read by the server before our writes, and late.
  server.watch?.onReplace(NAMES.map((name) => server.cluster(name, 1, 1)))
  server.watch?.onChange('MODIFIED', server.cluster('b', 2, 2))
  assert.equal(await Promise.race([waiting, sleep(20, 'still waiting')]), 'still waiting')
  server.watch?.onReplace(NAMES.map((name) => server.cluster(name, 2, 2)))
  assert.deepEqual(faults(await waiting), { a: '', b: '' })
})

test('a watch that hangs is not waited for: now and then the clusters are listed all the same', async () => {
  server.watch?.onState(true, '')
  for (const name of NAMES) store(name, 2, 2)
  assert.deepEqual(faults(await wait()), { a: '', b: '' })
  assert.equal(server.lists, 1)
})

test('what a list has shown of another change is not taken back by a watch that is behind it', async () => {
  server.watch?.onState(true, '')
  for (const name of NAMES) server.watch?.onChange('MODIFIED', server.cluster(name, 2, 2))
  // It has nothing in force, and is waited for until it goes away.
  const second = replicaLease('gw-2', 'portcullis-system', metaMicroTime(Date.now()))
  server.put(LEASES, second)
  const waiting = wait()
  await waitFor('a list of replicas', () => server.leaseLists > 0)
  server.remove(LEASES, nameOf(second), 'portcullis-system')
  // Another operator has changed it again; and the watch hangs.
  server.list = async (...given) => {
    if (given[0] !== UPSTREAM_CLUSTERS) return await MemoryObjects.prototype.list.apply(server, given)
    const items = [server.cluster('a', 3, server.lists++ === 0 ? 2 : 3), server.cluster('b', 2, 2)]
    return { items, resourceVersion: '99' }
  }
  const found = await waiting
  assert.equal(Object(found.get('a')?.object['metadata']).generation, 3)
  assert.deepEqual(faults(found), { a: '', b: '' })
})

test('the last look begins with a list, whatever a watch says that hangs', async () => {
  server.watch?.onState(true, '')
  for (const name of NAMES) server.watch?.onChange('MODIFIED', server.cluster(name, 2, 2))
  store('a', 3, 3)
  store('b', 2, 2)
  const found = await wait(PATIENT_MS, true)
  assert.equal(Object(found.get('a')?.object['spec']).generation, 3)
  assert.equal(server.lists, 1)
})

test('a status that never comes is named when time is over, by what a list says then', async () => {
  server.watch?.onState(true, '')
  store('a', 2, 2)
  store('b', 2, 1)
  assert.deepEqual(faults(await wait(50)), { a: '', b: 'generation 2 is not in force yet on gw-1' })
})

test('without the right to watch, the clusters are listed again and again, and no watch is tried again', async () => {
  server.watch?.onState(false, 'upstreamclusters is forbidden', 403)
  assert.equal(server.watchers, 0)
  for (const name of NAMES) store(name, 2, 1)
  const waiting = wait()
  await sleep(50)
  for (const name of NAMES) store(name, 2, 2)
  assert.deepEqual(faults(await waiting), { a: '', b: '' })
  assert.ok(server.lists > 2)
})

test('a watch that has been away for long says nothing; once it is back, it does', async () => {
  server.watch?.onState(false, 'ECONNREFUSED')
  for (const name of NAMES) store(name, 2, 1)
  const waiting = wait()
  server.watch?.onChange('MODIFIED', server.cluster('a', 2, 2))
  server.watch?.onChange('MODIFIED', server.cluster('b', 2, 2))
  assert.equal(await Promise.race([waiting, sleep(20, 'still waiting')]), 'still waiting')
  server.watch?.onState(true, '')
  assert.deepEqual(faults(await waiting), { a: '', b: '' })
})

test('a cluster that is deleted meanwhile ends the wait for it; one of its name that is created then is another', async () => {
  server.watch?.onState(true, '')
  const waiting = wait()
  await sleep(5)
  server.watch?.onChange('DELETED', server.cluster('a', 2, 1))
  server.watch?.onChange('MODIFIED', server.cluster('b', 2, 2))
  assert.deepEqual(faults(await waiting), { b: '' })
  server.watch?.onChange('ADDED', server.cluster('a', 1, 1, 'second'))
  assert.deepEqual(faults(await wait()), { a: '', b: '' })
  assert.equal(Object(followed.get('a')?.['metadata']).uid, 'second')
})
