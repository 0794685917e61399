import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { expositionText } from './exposition.ts'
import { MainFamilies } from './main-families.ts'
import { MetricTable } from './metric.ts'

const LABELS = ['one', 'two', 'three']
const BOUNDS = [0.1, 1, 5]

const operation = fc.record({
  kind: fc.constantFrom('add', 'set', 'observe', 'remove', 'clear'),
  values: fc.array(fc.constantFrom('', 'a', 'b"', 'c\\', 'd\n', ',x="y"'), { minLength: 3, maxLength: 3 }),
  number: fc.oneof(fc.nat(20), fc.constantFrom(0.1, 1, 5)),
})
type Operation = typeof operation extends fc.Arbitrary<infer T> ? T : never

/** One line per series, recomputed from all operations. */
function expectedLines(
  labels: readonly string[],
  hidden: readonly string[],
  operations: readonly Operation[],
): string[] {
  const shown = labels.flatMap((label, at) => (hidden.includes(label) ? [] : [{ label, at }]))
  const keyOf = ({ values }: Pick<Operation, 'values'>): string =>
    shown.map(({ label, at }) => `${label}=${JSON.stringify(values[at] ?? '')}`).join(',')
  const all = shown.length === 0 ? [''] : [...new Set(operations.map(keyOf))]
  const braced = (key: string, le = ''): string => {
    const labels = [key, le].filter((one) => one !== '').join(',')
    return labels === '' ? '' : `{${labels}}`
  }
  const gaugeOf = (key: string): number | undefined => {
    let value = shown.length === 0 ? 0 : undefined
    for (const one of operations) {
      if (one.kind === 'clear' || (one.kind === 'remove' && keyOf(one) === key)) value = undefined
      if (one.kind === 'set' && keyOf(one) === key) value = one.number
    }
    return value
  }
  return all.flatMap((key) => {
    const ofKind = (kind: string): number[] =>
      operations.filter((one) => one.kind === kind && keyOf(one) === key).map(({ number }) => number)
    const [added, observed, gauge] = [ofKind('add'), ofKind('observe'), gaugeOf(key)]
    const sum = (numbers: readonly number[]): number => numbers.reduce((a, b) => a + b, 0)
    const always = shown.length === 0
    return [
      ...(added.length > 0 || always ? [`portcullis_c${braced(key)} ${sum(added)}`] : []),
      ...(gauge === undefined ? [] : [`portcullis_g${braced(key)} ${gauge}`]),
      ...(observed.length > 0 || always
        ? [
            ...[...BOUNDS, Number.POSITIVE_INFINITY].map((bound) => {
              const le = `le="${bound === Number.POSITIVE_INFINITY ? '+Inf' : bound}"`
              return `portcullis_h_bucket${braced(key, le)} ${observed.filter((one) => one <= bound).length}`
            }),
            `portcullis_h_sum${braced(key)} ${sum(observed)}`,
            `portcullis_h_count${braced(key)} ${observed.length}`,
          ]
        : []),
    ]
  })
}

test('counters, gauges and histograms agree with a plain count, whatever their labels', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.nat(LABELS.length),
      fc.subarray(LABELS),
      fc.array(operation, { maxLength: 40 }),
      async (count, hidden, operations) => {
        const labels = LABELS.slice(0, count)
        const table = new MetricTable()
        const families = new MainFamilies(hidden)
        const counter = families.of(table.counter<readonly string[]>('c', labels, 'C'))
        const gauge = families.of(table.gauge<readonly string[]>('g', labels, 'G'))
        const histogram = families.of(table.histogram<readonly string[]>('h', labels, 'H', Float64Array.of(...BOUNDS)))
        for (const { kind, values, number } of operations) {
          const own = values.slice(0, count)
          if (kind === 'add') counter.add(number, ...own)
          if (kind === 'set') gauge.set(number, ...own)
          if (kind === 'observe') histogram.observe(number, ...own)
          if (kind === 'remove') gauge.remove(...own)
          if (kind === 'clear') gauge.clear()
        }
        const lines = (await expositionText(families.expose))
          .split('\n')
          .filter((line) => line !== '' && !line.startsWith('#'))
        const expected = expectedLines(labels, hidden, operations)
        assert.deepEqual([new Set(lines), lines.length], [new Set(expected), expected.length])
      },
    ),
    { numRuns: 300 },
  )
})

test('name, type and help are there before the first series', async () => {
  const table = new MetricTable()
  const families = new MainFamilies()
  families.of(table.counter<[string]>('late_total', ['label'], 'Comes later'))
  const text = '# HELP portcullis_late_total Comes later\n# TYPE portcullis_late_total counter\n\n'
  assert.equal(await expositionText(families.expose), text)
})
