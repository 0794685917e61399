// The recipes of CONTRIBUTING.md are true: each has at most four places, these exist, and each table that a recipe names is the one
// that the program works by.

import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { test } from 'node:test'
import { parse } from 'yaml'
import { DEGRADE_MODES } from '../../src/gateway/api/upstream-cluster/degrade-modes.ts'
import { UPSTREAM_CLUSTER_SPEC_SCHEMA } from '../../src/gateway/api/upstream-cluster/schema.ts'
import { STRATEGIES } from '../../src/gateway/api/upstream-cluster/strategies.ts'
import { createCursor, type EndpointView, PICKERS } from '../../src/gateway/core/endpoints/pick-endpoint.ts'
import { METRICS } from '../../src/gateway/metrics/descriptors.ts'
import type { Metric } from '../../src/gateway/metrics/metric.ts'
import { createMetrics } from '../../src/gateway/metrics/metrics.ts'
import type { JsonSchema } from '../../src/kit/api/json/json-schema.ts'
import { createProgram } from '../../src/program/cli/program.ts'

const ROOT = resolve(import.meta.dirname, '../..')
const RECIPES = [
  'Add a filter.',
  'Add a field to UpstreamCluster.',
  'Add a degrade mode.',
  'Add a balancing strategy.',
  'Add a metric.',
  'Add a command.',
]
const MOST_PLACES = 4

function read(path: string): string {
  return readFileSync(join(ROOT, path), 'utf8')
}

/** The numbered places of a recipe, each as one line. */
function placesOf(recipe: string): string[] {
  const page = read('CONTRIBUTING.md')
  const start = page.indexOf(`**${recipe}**`)
  assert.ok(start >= 0, `CONTRIBUTING.md has no recipe "${recipe}"`)
  const [text = ''] = page.slice(start).split(/\n\n(?=\*\*|##)/)
  return text
    .split(/\n(?=\d\. )/)
    .slice(1)
    .map((place) => place.replace(/\s+/g, ' '))
}

for (const recipe of RECIPES) {
  test(`${recipe} At most four places, and all that they name is there`, () => {
    const places = placesOf(recipe)
    assert.ok(places.length > 0 && places.length <= MOST_PLACES, `${places.length} places`)
    for (const place of places) {
      const paths = [...place.matchAll(/`((?:src|test|docs|deploy)\/[\w./-]+)`/g)].map(([, path = '']) => path)
      for (const path of paths) if (!path.includes('NAME')) assert.ok(existsSync(join(ROOT, path)), path)
      // `TABLE` of `file`, `TABLE` ... in `file`: where it says that one is, it is.
      for (const [, table = '', path = ''] of place.matchAll(/`([A-Z][A-Z_]+)` of `([\w./-]+\.ts)`/g)) {
        assert.match(read(path), new RegExp(`\\bconst ${table}\\b`), `${table} in ${path}`)
      }
    }
  })
}

test('a balancing strategy: one list, and every place follows or fails', () => {
  assert.deepEqual(Object.keys(PICKERS), STRATEGIES)
  const views: EndpointView[] = [{ url: 'a', hash: 1, weight: 1, available: true, inFlight: 0 }]
  for (const strategy of STRATEGIES) {
    const context = { random: () => 0, cursor: createCursor(), affinityHash: 0 }
    assert.equal(PICKERS[strategy](views, context), 0, strategy)
  }
  const ours = fieldOf(UPSTREAM_CLUSTER_SPEC_SCHEMA, 'dispatchPolicies', 'strategy')
  const crd = parse(read('deploy/crds/proxy.kubegateway.io_upstreamclusters.yaml'))
  const { spec } = crd.spec.versions[0].schema.openAPIV3Schema.properties
  for (const { enum: values } of [ours, fieldOf(spec, 'dispatchPolicies', 'strategy')])
    assert.deepEqual(
      values?.filter((value) => value !== ''),
      STRATEGIES,
    )
  const [, told = ''] = /^ +strategy: \w+ +# (RoundRobin.*)$/m.exec(read('docs/upstream-cluster.md')) ?? []
  assert.deepEqual(told.replace(' (default)', '').split(', '), STRATEGIES)
})

/** A field of the spec, below a list. */
function fieldOf(schema: JsonSchema, list: string, field: string): JsonSchema {
  return schema.properties?.[list]?.items?.properties?.[field] ?? assert.fail(`${list}[].${field}`)
}

test('a degrade mode: every mode is in the table of requests and on its page', () => {
  const requests: readonly (readonly string[])[] = JSON.parse(read('test/data/degrade-requests.json'))
  const strictest = new Set(requests.map((row) => row.at(-1)))
  // Off is told from Limited by no request, only by the rate: src/gateway/core/policy/degrade.test.ts.
  for (const mode of DEGRADE_MODES)
    assert.ok(strictest.has(mode) || mode === 'Off', `no request tells ${mode} from its neighbours`)
  for (const mode of DEGRADE_MODES) assert.match(read('docs/degrade.md'), new RegExp(`^\\| \`${mode}\``, 'm'))
})

test('a metric: whatever row of the table is counted by its call is in the text of all threads', async () => {
  // One row alone, merged and exposed: src/gateway/metrics/descriptors.test.ts. Row and page: test/repository/docs.test.ts.
  const metrics = createMetrics()
  metrics.clustersChanged([{ name: 'one', endpoints: ['two'] }])
  const plain = METRICS.filter(({ type, labels, first }) => type === 'counter' && first !== 'row' && labels.length < 3)
  assert.ok(plain.length > 10, 'the counters are found')
  for (const metric of plain) metrics.recorder.add(metric as Metric<[string, string]>, 3, 'one', 'two')
  const text = await metrics.text()
  for (const { name } of plain) assert.match(text, new RegExp(`^${name}(\\{[^}]*\\})? 3$`, 'm'))
})

test('a command: flags and help follow from where it is added', () => {
  const nothing = (): never => assert.fail('no command runs')
  const context = { version: '', out: nothing, err: nothing, input: noLines(), now: nothing, done: nothing }
  const program = createProgram([], { ...context, settings: nothing, serve: nothing, demo: nothing })
  const before = program.commands.map((command) => command.name())
  for (const name of before) assert.match(read('docs/commands.md'), new RegExp(`^\\| \`portcullis ${name}\\b`, 'm'))
  program.command('thrown-away').description('for this test alone').option('--colour <name>', 'of the page')
  assert.match(program.helpInformation(), /thrown-away \[options\] +for this test alone/)
})

async function* noLines(): AsyncGenerator<string> {}
