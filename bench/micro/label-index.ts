// Which protectors select a pod, of 100,000: microseconds for each query, and what filling, refilling and memory cost. Each
// shape says what the selectors look like; a few queries are compared with asking every selector.
//
//   node bench/micro/label-index.ts [protectors]   (with --expose-gc before it, bytes are exact)

import process from 'node:process'
import type { LabelSelector } from '../../src/kit/api/validation/label-selector-schema.ts'
import { compileSelector } from '../../src/kube/core/selectors/compile-selector.ts'
import { PodIndex } from '../../src/protection/core/selectors/pod-index.ts'
import { ProtectorIndex } from '../../src/protection/core/selectors/protector-index.ts'

type Labels = Readonly<Record<string, string>>

interface Shape {
  readonly title: string
  namespaceOf(index: number): string
  selectorOf(index: number): LabelSelector
  /** Labels of a pod that selector `index` selects. */
  podOf(index: number): Labels
}

const COUNT = Number(process.argv[2] ?? 100_000)
const QUERIES = 50_000
const COMPARED = 20

/** What pods have beside what selects them. */
function podLabels(labels: Labels, index: number): Labels {
  return {
    'managed-by': 'x',
    release: `r${index % 50}`,
    'pod-template-hash': `h${index % 997}`,
    env: 'prod',
    ...labels,
  }
}

const one = (): string => 'ns'
const many = (index: number): string => `ns-${index % 1_000}`
const app = (index: number): string => `app-${index}`
const tier = (index: number): string => `tier-${index % 4}`

const SHAPES: readonly Shape[] = [
  {
    title: 'app=..., 1,000 namespaces',
    namespaceOf: many,
    selectorOf: (index) => ({ matchLabels: { app: app(index) } }),
    podOf: (index) => ({ app: app(index) }),
  },
  {
    title: 'app=..., one namespace',
    namespaceOf: one,
    selectorOf: (index) => ({ matchLabels: { app: app(index) } }),
    podOf: (index) => ({ app: app(index) }),
  },
  {
    title: 'managed-by=x first, then app=... and tier in (...)',
    namespaceOf: one,
    selectorOf: (index) => ({
      matchLabels: { 'managed-by': 'x', app: app(index) },
      matchExpressions: [{ key: 'tier', operator: 'In', values: [tier(index), 'other', tier(index)] }],
    }),
    podOf: (index) => ({ app: app(index), tier: tier(index) }),
  },
  {
    title: 'app=... of 1,000, and component=... of 100',
    namespaceOf: one,
    selectorOf: (index) => ({ matchLabels: { app: `a${index % 1_000}`, component: `c${Math.floor(index / 1_000)}` } }),
    podOf: (index) => ({ app: `a${index % 1_000}`, component: `c${Math.floor(index / 1_000)}` }),
  },
  {
    title: 'all kinds mixed: app=, app+tier, In, Exists; 20 of NotIn only, DoesNotExist only or empty',
    namespaceOf: one,
    selectorOf: (index) => mixed(index),
    podOf: (index) => ({ app: app(index), tier: tier(index), [`feature-${index}`]: '' }),
  },
  {
    title: 'the same, 1,000 namespaces',
    namespaceOf: many,
    selectorOf: (index) => mixed(index),
    podOf: (index) => ({ app: app(index), tier: tier(index), [`feature-${index}`]: '' }),
  },
]

function mixed(index: number): LabelSelector {
  if (index < 20) {
    if (index % 3 === 0) return {}
    const key = 'env'
    return index % 3 === 1
      ? { matchExpressions: [{ key, operator: 'NotIn', values: ['test', 'staging'] }] }
      : { matchExpressions: [{ key, operator: 'DoesNotExist' }] }
  }
  switch (index % 4) {
    case 0:
      return { matchLabels: { app: app(index) } }
    case 1:
      return { matchLabels: { 'managed-by': 'x', tier: tier(index), app: app(index) } }
    case 2:
      return { matchExpressions: [{ key: 'app', operator: 'In', values: [app(index), `${app(index)}-canary`] }] }
    default:
      return { matchExpressions: [{ key: `feature-${index}`, operator: 'Exists' }] }
  }
}

function heapBytes(): number {
  globalThis.gc?.()
  return process.memoryUsage().heapUsed
}

function measure(shape: Shape): void {
  const { namespaceOf, selectorOf, podOf } = shape
  const selectors = Array.from({ length: COUNT }, (_, index) => selectorOf(index))
  const before = heapBytes()
  const index = new ProtectorIndex()
  const started = performance.now()
  for (const [at, selector] of selectors.entries()) index.put(`${namespaceOf(at)}/p${at}`, namespaceOf(at), selector)
  const filled = performance.now() - started
  const bytes = (heapBytes() - before) / COUNT
  // 7919 is prime: the queries go through all protectors in an order of their own.
  const places = Array.from({ length: QUERIES }, (_, query) => (query * 7_919) % COUNT)
  const pods = places.map((at) => podLabels(podOf(at), at))
  const times = new Float64Array(QUERIES)
  let matches = 0
  for (let round = 0; round < 2; round++) {
    matches = 0
    for (const [query, labels] of pods.entries()) {
      const namespace = namespaceOf(places[query] ?? 0)
      const start = process.hrtime.bigint()
      const found = index.query(namespace, labels)
      times[query] = Number(process.hrtime.bigint() - start) / 1_000
      matches += found.length
    }
  }
  compare(shape, index, selectors, pods, places)
  times.sort()
  const at = (part: number): string => (times[Math.floor(QUERIES * part)] ?? 0).toFixed(2)
  console.log(
    `${shape.title}: median ${at(0.5)} us, p99 ${at(0.99)} us, ${(matches / QUERIES).toFixed(1)} found; ` +
      `put ${((filled * 1_000) / COUNT).toFixed(1)} us, ${bytes.toFixed(0)} bytes each`,
  )
}

function compare(
  { title, namespaceOf }: Shape,
  index: ProtectorIndex,
  selectors: readonly LabelSelector[],
  pods: readonly Labels[],
  places: readonly number[],
): void {
  const compiled = selectors.map((selector) => compileSelector(selector))
  for (let query = 0; query < COMPARED; query++) {
    const labels = pods[query] ?? {}
    const namespace = namespaceOf(places[query] ?? 0)
    const plain = compiled.flatMap((selector, at) =>
      namespaceOf(at) === namespace && selector.matches(labels) ? [`${namespace}/p${at}`] : [],
    )
    const found = index.query(namespace, labels)
    if (found.join() !== plain.sort((a, b) => (a < b ? -1 : 1)).join()) throw new Error(`${title}: ${found.join()}`)
  }
}

/** 100,000 pods of 1,000 workloads; what the aggregator asks. */
function measurePods(): void {
  const index = new PodIndex<number>()
  const started = performance.now()
  for (let pod = 0; pod < COUNT; pod++) {
    index.put(`uid-${pod}`, 'ns', podLabels({ app: app(pod % 1_000), pod: `pod-${pod}` }, pod), pod)
  }
  const filled = performance.now() - started
  const selectors = Array.from(
    { length: 1_000 },
    (_, at): LabelSelector => ({
      matchLabels: { 'managed-by': 'x', app: app(at) },
    }),
  )
  const start = performance.now()
  let found = 0
  for (const selector of selectors) found += [...index.select('ns', selector)].length
  const each = ((performance.now() - start) * 1_000) / selectors.length
  const put = ((filled * 1_000) / COUNT).toFixed(1)
  console.log(
    `pods of a selector, ${COUNT} pods: ${each.toFixed(1)} us, ${found / selectors.length} found; put ${put} us`,
  )
}

for (const shape of SHAPES) measure(shape)
measurePods()
