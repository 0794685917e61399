// The reported state of an autoscaler's ConfigMap over time, on a clock controlled by the test.

import assert from 'node:assert/strict'
import { beforeEach, describe, test } from 'node:test'
import { recordedStatus, statusConfigMap, withoutBackoff } from '../../../../test/harness/clusters/autoscaler.ts'
import { Election } from '../../../../test/harness/election.ts'
import { MemoryObjects } from '../../../../test/harness/objects/memory-objects.ts'
import { waitFor } from '../../../../test/harness/wait.ts'
import type { JsonObject } from '../../../kit/api/json/json-object.ts'
import { CONFIG_MAPS } from '../../../kube/api/kinds/foreign-kinds.ts'
import type { CompiledAutoscaler } from '../../core/cluster/compiled-cluster.ts'
import { AutoscalerStatuses, FollowedStatus, MAX_STATUS, slimConfigMap } from './autoscaler-statuses.ts'

const SETTINGS: CompiledAutoscaler = {
  namespace: 'kube-system',
  name: 'cluster-autoscaler-status',
  staleAfterMs: 60_000,
}
const BEGIN = Date.UTC(2026, 6, 31, 12)
let sinceMs: number
const clock = { now: () => BEGIN + sinceMs, monotonic: () => 1000 + sinceMs }

beforeEach(() => {
  sinceMs = 0
})

/** As the autoscaler would write it now. @param skewMs how far its clock is ahead */
function written(skewMs = 0, change: (status: string) => string = (status) => status): JsonObject {
  const nowMs = clock.now() + skewMs
  return statusConfigMap(change(recordedStatus(nowMs)), nowMs)
}

function followed(): FollowedStatus {
  const status = new FollowedStatus(SETTINGS, clock)
  status.onState(true, '')
  return status
}

function backedOff(status: FollowedStatus): readonly string[] {
  const groups = status.fact().report?.groups ?? []
  return groups.filter(({ scaleUp }) => scaleUp === 'Backoff').map(({ name }) => name)
}

describe('one ConfigMap', () => {
  test('nothing yet, none, written, silent, written again, gone', () => {
    const status = new FollowedStatus(SETTINGS, clock)
    assert.equal(status.fact().seen, 'pending')
    status.onReplace([])
    status.onState(true, '')
    assert.equal(status.fact().seen, 'missing')
    status.onChange('ADDED', written())
    assert.equal(status.fact().seen, 'current')
    assert.equal(status.fact().writtenAtMs, BEGIN)
    assert.deepEqual(backedOff(status), ['MachineDeployment/machines/spot'])
    sinceMs = 59_999
    assert.equal(status.fact().seen, 'current')
    sinceMs = 60_000
    assert.equal(status.fact().seen, 'stale')
    assert.equal(status.fact().writtenAtMs, BEGIN, 'when it wrote last')
    status.onChange('MODIFIED', written())
    assert.equal(status.fact().seen, 'current')
    status.onChange('DELETED', written())
    assert.deepEqual([status.fact().seen, status.fact().report], ['missing', undefined])
  })

  test('what is old when it is read first is not believed before it is written again, and never when it is not', () => {
    const old = written(-120_000)
    const status = followed()
    status.onReplace([old])
    assert.equal(status.fact().seen, 'pending', 'it may be a clock that is behind')
    assert.notEqual(status.fact().report, undefined)
    sinceMs = 30_000
    status.onReplace([old])
    assert.equal(status.fact().seen, 'pending', 'a list is not a write')
    sinceMs = 60_000
    assert.equal(status.fact().seen, 'stale')
    const behind = followed()
    behind.onReplace([written(-120_000)])
    sinceMs += 10_000
    behind.onChange('MODIFIED', written(-120_000))
    assert.equal(behind.fact().seen, 'current')
  })

  test('a clock that is ahead by an hour does not hide that the status is no longer written', () => {
    const status = followed()
    status.onReplace([written(3_600_000)])
    assert.equal(status.fact().seen, 'current')
    sinceMs = 60_000
    assert.equal(status.fact().seen, 'stale')
  })

  test('a label set by another client is not a write of the autoscaler', () => {
    const status = followed()
    const object = written()
    status.onReplace([object])
    sinceMs = 60_000
    status.onChange('MODIFIED', { ...object, metadata: { ...Object(object['metadata']), labels: { a: 'b' } } })
    assert.equal(status.fact().seen, 'stale')
  })

  test('a cluster that cannot be read', () => {
    const status = followed()
    status.onReplace([written()])
    status.onState(false, 'connect ECONNREFUSED')
    assert.deepEqual([status.fact().seen, status.fact().message], ['unreachable', 'connect ECONNREFUSED'])
    assert.notEqual(status.fact().report, undefined, 'what was seen last stays')
  })

  test('what holds no status is counted, and the report before it stays', (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] })
    const status = followed()
    status.onReplace([written()])
    const before130 = 'Cluster-autoscaler status at 2026-07-31 12:00:05.152766082 +0000 UTC:\nCluster-wide:\n'
    for (const [at, text] of ['', 'hello', 'x'.repeat(MAX_STATUS + 1), before130].entries()) {
      sinceMs += 10_000
      status.onChange('MODIFIED', statusConfigMap(text, clock.now()))
      assert.equal(status.fact().seen, 'unreadable')
      assert.match(
        status.fact().message,
        [
          /is empty/,
          /is not the YAML of a cluster-autoscaler/,
          /more than 262144 characters/,
          /text format of cluster-autoscalers before 1\.30, which is not read: upgrade the cluster-autoscaler/,
        ][at] ?? /^$/,
      )
      assert.equal(status.unreadable, at + 1)
    }
    assert.deepEqual(backedOff(status), ['MachineDeployment/machines/spot'])
  })

  test('an empty one that nothing stood before is unreadable, too', () => {
    const status = followed()
    status.onReplace([statusConfigMap('', clock.now())])
    assert.equal(status.fact().seen, 'unreadable')
    status.onChange('DELETED', statusConfigMap('', clock.now()))
    sinceMs = 10_000
    status.onChange('ADDED', statusConfigMap('', clock.now()))
    assert.deepEqual([status.fact().seen, status.unreadable], ['unreadable', 2])
  })

  test('a writer that writes again and again has it read every five seconds, and the last write in the end', (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] })
    const status = followed()
    status.onReplace([written()])
    const reports = new Set([status.fact().report])
    for (let at = 1; at <= 1000; at++) {
      sinceMs += 10
      t.mock.timers.tick(10)
      status.onChange(
        'MODIFIED',
        written(0, (text) => text.replace('maxSize: 10', `maxSize: ${at}`)),
      )
      reports.add(status.fact().report)
    }
    assert.ok(reports.size <= 3, `${reports.size} read`)
    sinceMs += 5_000
    t.mock.timers.tick(5_000)
    assert.equal(status.fact().report?.groups?.[0]?.maxSize, 1000)
    status.stop()
  })

  test('a write that only has other times is not read at all', () => {
    const status = followed()
    status.onReplace([written()])
    const { report } = status.fact()
    for (let at = 0; at < 10; at++) {
      sinceMs += 10_000
      status.onChange('MODIFIED', written())
    }
    assert.equal(status.fact().report, report, 'the same object')
    assert.equal(status.fact().writtenAtMs, clock.now())
    assert.equal(status.fact().seen, 'current')
    sinceMs += 10_000
    status.onChange('MODIFIED', written(0, withoutBackoff))
    assert.deepEqual(backedOff(status), [])
  })

  test('no more is kept of a ConfigMap than is needed', () => {
    const huge = { a: 'x'.repeat(1_000_000), status: 'y'.repeat(1_000_000) }
    const slim = slimConfigMap({ ...written(), data: huge })
    assert.ok(JSON.stringify(slim).length < MAX_STATUS + 1000)
  })
})

describe('several clusters', () => {
  class World {
    readonly settings = new Map<string, CompiledAutoscaler | undefined>()
    readonly servers = new Map<string, MemoryObjects>()
    readonly election = new Election(false)
    readonly statuses = new AutoscalerStatuses({
      clusters: {
        names: () => this.settings.keys(),
        get: (name) => (this.settings.has(name) ? { compiled: { autoscaler: this.settings.get(name) } } : undefined),
      },
      connect: (name) => Object.assign(this.server(name), { close: () => Promise.resolve() }),
      leadership: this.election.leadership,
      clock,
    })

    server(name: string): MemoryObjects {
      const known = this.servers.get(name) ?? new MemoryObjects()
      this.servers.set(name, known)
      return known
    }

    followers(): number[] {
      return [...this.servers.values()].map((server) => server.followers(CONFIG_MAPS))
    }
  }

  test('only those that ask for it are followed, only by the leader, and only the one ConfigMap', async () => {
    const world = new World()
    world.settings.set('a', SETTINGS).set('b', undefined)
    const other = statusConfigMap('hello', 0)
    world.server('a').put(CONFIG_MAPS, { ...other, metadata: { ...Object(other['metadata']), name: 'other' } })
    world.server('a').put(CONFIG_MAPS, written())
    world.statuses.update()
    assert.equal(world.statuses.get('a'), undefined)
    world.election.leads = true
    await waitFor('the status of a', () => world.statuses.get('a')?.seen === 'current')
    assert.deepEqual(world.followers(), [1])
    assert.equal(world.statuses.get('b'), undefined)
    assert.deepEqual(
      world.statuses.all().map(({ cluster, unreadable }) => [cluster, unreadable]),
      [['a', 0]],
    )
    // A change of another cluster, and one that does not concern it.
    world.statuses.update(new Set(['b']))
    world.statuses.update(new Set(['a']))
    assert.equal(world.statuses.get('a')?.seen, 'current')
    world.settings.set('a', { ...SETTINGS, name: 'other' })
    world.statuses.update(new Set(['a']))
    await waitFor('the other ConfigMap', () => world.statuses.get('a')?.seen === 'unreadable')
    world.settings.delete('a')
    world.statuses.update(new Set(['a']))
    await waitFor('the last follower to stop', () => world.followers().every((count) => count === 0))
    world.settings.set('b', SETTINGS)
    world.statuses.update()
    assert.notEqual(world.statuses.get('b'), undefined)
    world.election.leads = false
    assert.equal(world.statuses.get('b'), undefined)
    await world.statuses.stop()
    assert.deepEqual(world.followers(), [0, 0])
  })
})
