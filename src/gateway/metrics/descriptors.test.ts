import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { PROTECTION_METRICS } from '../../protection/metrics/descriptors.ts'
import { GUARD_ACTIONS } from '../../scale-up-guard/metrics/descriptors.ts'
// Adds the rows of subjects that can be left out.
import '../../program/subjects/subjects.ts'
import { BUILD_INFO, KINDS, METRICS, WATCHERS } from './descriptors.ts'
import { Exposition } from './exposition.ts'
import { IS_SET, type Metric, VALUE } from './metric.ts'
import { exposeCluster, exposeProcess } from './metrics.ts'
import { NODE_METRICS } from './node-metrics.ts'
import { PROCESS_METRICS } from './process-metrics.ts'
import { SeriesStore, type StoreSnapshot } from './series.ts'
import { MergedStore } from './series-merge.ts'

/** More labels than a row holds: the main thread keeps them itself (main-families.ts). */
const NO_ROWS: readonly Metric[] = [BUILD_INFO, GUARD_ACTIONS]
/** Metrics with independent rows: those attached to verb rows are tested with requests. */
const ALONE: readonly Metric[] = METRICS.filter(
  (metric) => metric.first !== 'row' && metric !== WATCHERS && !NO_ROWS.includes(metric),
)

async function textOf(snapshot: StoreSnapshot): Promise<string> {
  const into = new Exposition()
  const known = new Map([['prod', new Set(['one'])]])
  if (snapshot.cluster === '') exposeProcess(into, snapshot)
  else await exposeCluster(into, snapshot, known, () => Promise.resolve())
  return into.text()
}

/** The snapshot of a thread that counted it 3 times. */
function counted(metric: Metric, id: number): StoreSnapshot {
  const store = new SeriesStore(metric.perCluster ? 'prod' : '', id)
  const at = store.table(metric).at('one', 'two')
  store.set(at + VALUE, 3)
  if (metric.merge === 'perSnapshot') store.set(at + IS_SET, 1)
  return store.snapshot()
}

test('the number of a row is the place of its kind in the table, and names are there once', () => {
  assert.deepEqual(
    KINDS.map(({ id }) => id),
    KINDS.map((_, index) => index),
  )
  assert.equal(new Set(METRICS.map(({ name }) => name)).size, METRICS.length)
})

// test/prometheus/golden.test.ts compares the same file with a running gateway.
test('the descriptors are those of the file on which dashboards and alerts depend', () => {
  const file = join(import.meta.dirname, '../../../test/data/metrics.json')
  const golden: Record<string, { type: string; help: string }> = JSON.parse(readFileSync(file, 'utf8'))
  const tables = [...METRICS, ...PROTECTION_METRICS, ...PROCESS_METRICS, ...NODE_METRICS]
  const all = new Map(tables.map((metric) => [metric.name, metric]))
  assert.equal(all.size, tables.length, 'no name is there twice')
  for (const [name, { type, help }] of Object.entries(golden)) {
    const metric = all.get(name)
    assert.deepEqual([metric?.type, metric?.help], [type, help], name)
  }
})

test('a descriptor is all that a metric needs to be in the text, with its labels in their order', async () => {
  for (const metric of ALONE) {
    const { name, type, help, labels } = metric
    const text = await textOf(counted(metric, 1))
    assert.ok(text.startsWith(`# HELP ${name} ${help}\n# TYPE ${name} ${type}\n${name}`), text)
    const series = text.split('\n')[2] ?? ''
    const shown = [...series.matchAll(/(\w+)="/g)].map(([, label]) => label)
    assert.deepEqual(shown, type === 'histogram' ? [...labels, 'le'] : labels, series)
    if (type !== 'histogram') assert.ok(series.endsWith(' 3'), series)
  }
})

test('the counts of a dead thread stay or go as the descriptor says', async () => {
  for (const metric of ALONE) {
    const merged = new MergedStore(metric.perCluster ? 'prod' : '')
    merged.sum(new Map([1, 2].map((thread) => [thread, counted(metric, thread)])))
    merged.keep(2, counted(metric, 2))
    const { values } = merged.sum(new Map([[1, counted(metric, 1)]]))
    assert.equal(values[VALUE], metric.merge === 'kept' ? 6 : 3, metric.name)
  }
})
