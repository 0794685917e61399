// The table "What a change costs" of CONTRIBUTING.md is true: in how many places of src/ a setting, a metric, a refusal and so on stands.
// What is counted is where each is declared or listed; the code that it is for is the change itself, and is not counted.

import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { test } from 'node:test'
import { UPSTREAM_CLUSTER_SPEC_SCHEMA } from '../../src/gateway/api/upstream-cluster/schema.ts'
import { FILTER_ORDER, PURE_FILTERS } from '../../src/gateway/core/admission/order.ts'
import { METRICS } from '../../src/gateway/metrics/descriptors.ts'
import { NODE_METRICS } from '../../src/gateway/metrics/node-metrics.ts'
import { PROCESS_METRICS } from '../../src/gateway/metrics/process-metrics.ts'
import type { JsonSchema } from '../../src/kit/api/json/json-schema.ts'
import { REFUSAL_TABLE } from '../../src/kit/core/refusal/refusal.ts'
import { ALL_SETTINGS } from '../../src/process/config/config.ts'
import { createProgram } from '../../src/program/cli/program.ts'
import { MONITORS, PROTECTION_METRICS } from '../../src/protection/metrics/descriptors.ts'

const ROOT = resolve(import.meta.dirname, '../..')
const SOURCES: ReadonlyMap<string, readonly string[]> = new Map(
  readdirSync(join(ROOT, 'src'), { recursive: true, encoding: 'utf8' })
    .filter((name) => /\.tsx?$/.test(name) && !/\.test\.tsx?$/.test(name))
    .map((name) => [`src/${name}`, readFileSync(join(ROOT, 'src', name), 'utf8').split('\n')]),
)

/** Lines of src/, without comments, as `file:line`. */
function linesWith(pattern: RegExp, under = 'src/'): string[] {
  return [...SOURCES].flatMap(([file, lines]) => {
    if (!file.startsWith(under)) return []
    return lines.flatMap((line, at) =>
      pattern.test(line) && !/^\s*(\/\/|\/?\*)/.test(line) ? [`${file}:${at + 1}`] : [],
    )
  })
}

function filesOf(places: readonly string[]): string[] {
  return [...new Set(places.map((place) => place.replace(/:\d+$/, '')))].sort()
}

/** The number under "now" in the row of the table. */
function told(kind: string): number {
  const page = readFileSync(join(ROOT, 'CONTRIBUTING.md'), 'utf8')
  const cells = page
    .split('\n')
    .map((line) => line.split('|').map((cell) => cell.trim()))
    .find(([, first]) => first === kind)
  assert.ok(cells !== undefined, `CONTRIBUTING.md has no row "${kind}"`)
  return Number(cells[3])
}

test('a setting is one row of one table', () => {
  let rows = 0
  for (const [file, lines] of SOURCES) {
    if (!file.startsWith('src/process/config/')) continue
    for (const [, outer = '', table = ''] of lines
      .join('\n')
      .matchAll(/= settings\((?:\n( +))?\{\n([\s\S]*?)^\1\}/gm)) {
      // The keys of the outermost level.
      rows += [...table.matchAll(new RegExp(`^${outer} {2}\\w+: `, 'gm'))].length
    }
  }
  assert.equal(new Set(ALL_SETTINGS.map(({ name }) => name)).size, ALL_SETTINGS.length)
  assert.equal(rows, ALL_SETTINGS.length * told('a setting'))
})

test('a metric is one row', () => {
  // One row makes all of them.
  const monitors: ReadonlySet<unknown> = new Set(MONITORS.values())
  for (const metric of [...METRICS, ...PROTECTION_METRICS, ...PROCESS_METRICS, ...NODE_METRICS]) {
    if (monitors.has(metric)) continue
    const { name } = metric
    const places = linesWith(new RegExp(`'(portcullis_)?${name.replace(/^portcullis_/, '')}'`))
    assert.equal(places.length, told('a metric'), `${name}: ${places.join(', ')}`)
  }
})

test('a refusal is one row', () => {
  for (const reason of Object.keys(REFUSAL_TABLE)) {
    const rows = linesWith(new RegExp(`^ {2}('${reason}'|${reason}): \\{ code: `))
    assert.equal(rows.length, told('a refusal'), `${reason}: ${rows.join(', ')}`)
    assert.deepEqual(
      linesWith(new RegExp(`^ {2}\\| '${reason}'`), 'src/kit/core/refusal/'),
      [],
      'no list beside the table',
    )
  }
})

test('a field is a row of the schema, a field of the compiled form and the line that fills it; its type follows', () => {
  for (const name of namesIn(UPSTREAM_CLUSTER_SPEC_SCHEMA)) {
    const types = linesWith(
      new RegExp(`^ +readonly ${name}\\??: `),
      'src/gateway/api/upstream-cluster/upstream-cluster.ts',
    )
    assert.deepEqual(types, [], `the type of ${name} is written beside its schema`)
  }
  // spec.autoscaler.staleAfterSeconds: its only reader in the end is src/gateway/controllers/autoscaler-status/.
  const declared = linesWith(/\bstaleAfterSeconds\b/)
  const compiled = linesWith(/^ {2}readonly staleAfterMs: number$/, 'src/gateway/core/cluster/compiled-cluster.ts')
  assert.deepEqual(filesOf(declared), [
    'src/gateway/api/upstream-cluster/cluster-autoscaler.ts',
    'src/gateway/core/cluster/compile-settings.ts',
  ])
  assert.equal(declared.length + compiled.length, told('a field'))
})

function namesIn({ properties = {}, items }: JsonSchema): string[] {
  const below = Object.entries(properties).flatMap(([name, schema]) => [name, ...namesIn(schema)])
  return items === undefined ? below : [...below, ...namesIn(items)]
}

test('a filter is its file and where it is listed', () => {
  for (const name of FILTER_ORDER) {
    const camel = name.replace(/-(.)/g, (_, letter: string) => letter.toUpperCase())
    const listed = linesWith(
      new RegExp(`^ {2,4}('${name}'|${name}|${camel})(,|: \\w+,|: (new )?\\w+\\((\\{|\\w+\\),))$`),
    ).filter((place) => {
      return /src\/(gateway\/core\/admission\/order|gateway\/core\/explain\/evaluate-request|program\/threads\/thread\/filters|[\w-]+\/app\/filters)\.ts/.test(
        place,
      )
    })
    const isPure = Object.hasOwn(PURE_FILTERS, name)
    // The guard of lists has a stand-in, too: sizes are learnt by the gateway.
    if (name === 'list-guard') continue
    const files = 1 + filesOf(listed).length
    assert.equal(files, told(isPure ? 'a filter' : 'a filter that asks'), `${name}: ${listed.join(', ')}`)
  }
})

test('a controller is its file and one line where it is started', () => {
  const assemble = SOURCES.get('src/program/lifecycle/assemble.ts')?.join('\n') ?? ''
  const started = [
    ...assemble.matchAll(/new Started\(\s*'[\w-]+',\s*\(\) =>\s*\(?(?:auditWebhook && )?(start\w+|follow\w+)\(/g),
  ]
  assert.ok(started.length >= 3, `${started.length} parts are found`)
  for (const [, name = ''] of started) {
    const files = filesOf(linesWith(new RegExp(`\\b${name}\\(`)))
    assert.equal(files.length, told('a controller'), `${name}: ${files.join(', ')}`)
  }
})

test('an alert is a rule, what to do, and what makes it fire', () => {
  const read = (path: string): string => readFileSync(join(ROOT, path), 'utf8')
  const rules = [...read('deploy/prometheus/rules.yaml').matchAll(/- alert: (\w+)/g)].map(([, name = '']) => name)
  assert.ok(rules.length > 30)
  const others = [read('docs/runbooks.md'), read('test/prometheus/alert-cases.ts')]
  for (const name of rules) {
    const places = 1 + others.filter((text) => text.includes(name)).length
    assert.equal(places, told('an alert'), name)
    assert.deepEqual(linesWith(new RegExp(`\\b${name}\\b`)), [], `${name} is named in src/`)
  }
})

test('a command is its file, and its flags in one place', () => {
  const nothing = (): never => assert.fail('no command runs')
  const deps = { version: '', out: nothing, err: nothing, input: noLines(), now: nothing, done: nothing }
  const program = createProgram([], { ...deps, settings: nothing, serve: nothing, demo: nothing })
  for (const command of program.commands) {
    // Not those of the same name below another command.
    const declared = new RegExp(`\\bprogram\\s*\\.command\\('${command.name()}'\\)`, 'g')
    const places = [...SOURCES].flatMap(([file, lines]) => [...lines.join('\n').matchAll(declared)].map(() => file))
    assert.equal(places.length + 1, told('a command'), `${command.name()}: ${places.join(', ')}`)
  }
})

async function* noLines(): AsyncGenerator<string> {}
