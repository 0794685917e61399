import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CONFIG_CLUSTERS, CONFIG_GENERATION } from '../../gateway/metrics/descriptors.ts'
import type { Exposition } from '../../gateway/metrics/exposition.ts'
import { SILENT } from '../../kit/api/ports.ts'
import { type Component, Components, Started, stopInReverse } from './component.ts'

/** Records the calls it receives. */
function recorded(name: string, calls: string[], fails: 'start' | 'stop' | 'never' = 'never'): Component {
  const call = async (what: 'start' | 'stop'): Promise<void> => {
    await Promise.resolve()
    calls.push(`${what} ${name}`)
    if (fails === what) throw new Error(`${name} fails`)
  }
  return { name, start: () => call('start'), stop: () => call('stop') }
}

function samplesOf(text: string): string[] {
  return text.split('\n').filter((line) => line !== '' && !line.startsWith('#'))
}

test('starts one after the other in order, stops in reverse, and leaves out what is switched off', async () => {
  const calls: string[] = []
  const components = new Components(SILENT)
  components.add(recorded('a', calls), undefined, recorded('b', calls))
  components.add({ name: 'idle' }, recorded('c', calls))
  await components.start()
  await components.stop()
  assert.deepEqual(calls, ['start a', 'start b', 'start c', 'stop c', 'stop b', 'stop a'])
})

test('behind one that cannot start none starts; all are told to stop', async () => {
  const calls: string[] = []
  const components = new Components(SILENT)
  components.add(recorded('a', calls), recorded('b', calls, 'start'), recorded('c', calls))
  await assert.rejects(components.start(), /b fails/)
  await components.stop()
  assert.deepEqual(calls, ['start a', 'start b', 'stop c', 'stop b', 'stop a'])
})

test('each stops whether or not another one fails; the first error is thrown, all are logged', async () => {
  const calls: string[] = []
  const failed: unknown[] = []
  const log = { ...SILENT, error: (_: string, fields?: Record<string, unknown>) => void failed.push(fields?.['part']) }
  const components = new Components(log)
  components.add(recorded('a', calls, 'stop'), recorded('b', calls), recorded('c', calls, 'stop'))
  await assert.rejects(components.stop(), /c fails/)
  assert.deepEqual(calls, ['stop c', 'stop b', 'stop a'])
  assert.deepEqual(failed, ['c', 'a'])
})

test('parts without a name or a stop can stand in a list', async () => {
  const calls: string[] = []
  await stopInReverse(
    [{ stop: () => void calls.push('first') }, {}, undefined, { stop: () => void calls.push('last') }],
    SILENT,
  )
  assert.deepEqual(calls, ['last', 'first'])
})

test('collects what all parts tell', async () => {
  const components = new Components(SILENT)
  const check = (name: string) => ({ name, ok: true, message: '' })
  components.add(
    {
      name: 'a',
      checks: () => [check('one'), check('two')],
      exposeMetrics: (into) => into.addMetric(CONFIG_CLUSTERS, 1),
      reloads: new Map([['x', true]]),
    },
    { name: 'silent' },
    {
      name: 'b',
      checks: () => [check('three')],
      exposeMetrics: async (into) => {
        await Promise.resolve()
        into.addMetric(CONFIG_GENERATION, 2)
      },
      certificates: [{ name: 'serving', pem: 'pem' }],
      reloads: new Map([['y', false]]),
    },
  )
  assert.deepEqual(
    components.checks().map(({ name }) => name),
    ['one', 'two', 'three'],
  )
  assert.deepEqual(samplesOf(await components.metricsText()), [
    'portcullis_config_clusters 1',
    'portcullis_config_generation 2',
  ])
  assert.deepEqual(components.certificates, [{ name: 'serving', pem: 'pem' }])
  assert.deepEqual(
    [...components.reloads],
    [
      ['x', true],
      ['y', false],
    ],
  )
})

test('one that is created at its start tells nothing before', async () => {
  const calls: string[] = []
  const started = new Started('late', async () => {
    await Promise.resolve()
    return {
      exposeMetrics: (into: Exposition) => into.addMetric(CONFIG_CLUSTERS, 1),
      reloads: new Map([['file', true]]),
      stop: () => void calls.push('stop'),
    }
  })
  const components = new Components(SILENT)
  components.add(started, new Started('off', () => undefined))
  assert.equal(await components.metricsText(), '')
  assert.equal(started.running, undefined)
  await components.stop()
  assert.deepEqual(calls, [])
  await components.start()
  assert.deepEqual(samplesOf(await components.metricsText()), ['portcullis_config_clusters 1'])
  assert.deepEqual([...components.reloads], [['file', true]])
  assert.deepEqual([components.certificates, components.checks()], [[], []])
  await components.stop()
  assert.deepEqual(calls, ['stop'])
})
