import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { MemoryObjects } from '../../../../test/harness/objects/memory-objects.ts'
import { waitFor } from '../../../../test/harness/wait.ts'
import type { JsonObject } from '../../../kit/api/json/json-object.ts'
import type { Logger } from '../../../kit/api/ports.ts'
import type { LabelSelector } from '../../../kit/api/validation/label-selector-schema.ts'
import { systemClock } from '../../../kit/io/world/clock.ts'
import { PODS } from '../../../kube/api/kinds/foreign-kinds.ts'
import { statusError } from '../../../kube/api/status.ts'
import { UPDATE_TRIGGER_ANNOTATION } from '../../api/protection.ts'
import { UpdateTrigger } from './update-trigger.ts'

function start(
  t: TestContext,
  { podSelector, namespace = 'default' }: { podSelector?: LabelSelector; namespace?: string } = {},
) {
  const client = new MemoryObjects()
  const warnings: string[] = []
  const events: string[] = []
  const quiet = (): void => undefined
  const warn = (message: string, fields?: Record<string, unknown>): void =>
    void warnings.push(`${message} ${fields?.['why']}`)
  const log: Logger = { debug: quiet, info: quiet, warn, error: quiet }
  const begin = (): UpdateTrigger => {
    const trigger = new UpdateTrigger({
      client,
      cell: 'worker-1',
      trigger: { namespace, name: 'trigger', intervalMs: 5, podSelector },
      clock: systemClock,
      random: () => 0.5,
      log,
      events: { trigger: (event, error) => void events.push(`${event} ${error}`.trim()) },
    })
    t.after(() => trigger.stop())
    return trigger
  }
  const pod = (): JsonObject | undefined => client.find(PODS, 'trigger', namespace)
  const metadata = (): { labels?: Record<string, string>; annotations?: Record<string, string> } =>
    Object(pod()?.['metadata'])
  const stamp = (): string => metadata().annotations?.[UPDATE_TRIGGER_ANNOTATION] ?? ''
  return { client, warnings, events, begin, pod, metadata, stamp }
}

test('the pod is made when it is missing, and written again and again', async (t) => {
  const { begin, pod, stamp, warnings, client } = start(t)
  const trigger = begin()
  await waitFor('the pod', () => stamp() !== '')
  const { spec } = pod() as { spec: { schedulerName: string; containers: { name: string; image: string }[] } }
  assert.equal(spec.schedulerName, 'do-not-schedule')
  assert.deepEqual(
    spec.containers.map(({ name, image }) => [name, image]),
    [['main', ':']],
  )
  const before = stamp()
  await waitFor('another time', () => stamp() > before)
  await trigger.stop()
  const writes = client.writes.length
  const other = start(t)
  other.begin()
  await waitFor('another trigger to have written for longer', () => other.events.length > 10)
  assert.deepEqual([client.writes.length, warnings, pod() !== undefined], [writes, [], true])
})

test('it heals: deleted, without its annotation, or there before without one', async (t) => {
  const { client, begin, pod, stamp, warnings } = start(t)
  client.put(PODS, { metadata: { name: 'trigger', namespace: 'default' } })
  begin()
  await waitFor('the annotation', () => stamp() !== '')
  client.put(PODS, { metadata: { name: 'trigger', namespace: 'default', annotations: null } })
  await waitFor('the annotation again', () => stamp() !== '')
  client.remove(PODS, 'trigger', 'default')
  assert.equal(pod(), undefined)
  await waitFor('the pod again', () => stamp() !== '')
  assert.deepEqual(warnings, [])
})

test('a namespace that is missing, or a refusal, is said once; it goes on, and recovers', async (t) => {
  const { client, begin, stamp, warnings, events } = start(t, { namespace: 'later' })
  const { create } = client
  let refused = 0
  client.create = async (kind, object) => {
    if (refused++ < 4) throw statusError('Forbidden', 'pods is forbidden')
    return await create.call(client, kind, object)
  }
  begin()
  await waitFor('five attempts', () => refused >= 5)
  await waitFor('another reason', () => warnings.length === 2)
  assert.match(warnings[0] ?? '', /pods is forbidden/)
  assert.match(warnings[1] ?? '', /no later/)
  client.namespaces = ['later']
  await waitFor('the pod', () => stamp() !== '')
  assert.equal(warnings.length, 2)
  assert.deepEqual(events.slice(0, 2), ['create Forbidden', 'create Forbidden'])
})

test('the pod is among those that the cell selects, where that can be', async (t) => {
  const podSelector: LabelSelector = {
    matchLabels: { tier: 'one' },
    matchExpressions: [
      { key: 'zone', operator: 'In', values: ['a', 'b'] },
      { key: 'seen', operator: 'Exists' },
      { key: 'hidden', operator: 'DoesNotExist' },
    ],
  }
  const { begin, metadata, stamp, warnings } = start(t, { podSelector })
  begin()
  await waitFor('the pod', () => stamp() !== '')
  const { tier, zone, seen, hidden } = metadata().labels ?? {}
  assert.deepEqual([tier, zone, seen, hidden, warnings.length], ['one', 'a', '', undefined, 0])
  const never = start(t, {
    podSelector: { matchLabels: { a: 'b' }, matchExpressions: [{ key: 'a', operator: 'DoesNotExist' }] },
  })
  never.begin()
  assert.match(never.warnings[0] ?? '', /podLabelSelector/)
  const nowhere = start(t, { namespace: '' })
  nowhere.begin()
  assert.match(nowhere.warnings[0] ?? '', /namespace/)
  assert.deepEqual(nowhere.client.writes, [])
})
