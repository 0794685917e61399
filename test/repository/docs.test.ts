// The pages against the code: what is there must be written down, and what is written down must be there.

import assert from 'node:assert/strict'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { test } from 'node:test'
import type { CommandUnknownOpts } from 'commander'
import { parseAllDocuments } from 'yaml'
import { chartFiles, UPDATE_COMMAND } from '../../build/chart/chart-files.ts'
import { anchorOf } from '../../docs/.vitepress/anchors.ts'
import { check } from '../../src/cli/check.ts'
import { explain } from '../../src/cli/explain.ts'
import { checkUpstreamCluster } from '../../src/gateway/api/upstream-cluster/checks.ts'
import { CLIENT_CONFIG_SCHEMA } from '../../src/gateway/api/upstream-cluster/credentials-schema.ts'
import { DEGRADE_MODES } from '../../src/gateway/api/upstream-cluster/degrade-modes.ts'
import { UPSTREAM_CLUSTER_SPEC_SCHEMA } from '../../src/gateway/api/upstream-cluster/schema.ts'
import type { UpstreamCluster } from '../../src/gateway/api/upstream-cluster/upstream-cluster.ts'
import { FILTER_ORDER } from '../../src/gateway/core/admission/order.ts'
import { compileDegrade } from '../../src/gateway/core/cluster/compile-settings.ts'
import { degradeMessage } from '../../src/gateway/core/policy/degrade.ts'
import { METRICS } from '../../src/gateway/metrics/descriptors.ts'
import { createMetrics } from '../../src/gateway/metrics/metrics.ts'
import { canBecome, PHASES } from '../../src/gateway/request/exchange/state.ts'
import * as budget from '../../src/http2/budget.ts'
import { CLIENT_SIDE_LIMITS, SERVER_LIMITS } from '../../src/http2/limits.ts'
import { fieldOf, impliedDefault, type JsonSchema } from '../../src/kit/api/json/json-schema.ts'
import { ANSWER_WATER_BYTES, HIGH_WATER_BYTES } from '../../src/kit/api/stream.ts'
import { REFUSAL_TABLE } from '../../src/kit/core/refusal/refusal.ts'
import { MAX_VALUES } from '../../src/kube/core/objects/json-text.ts'
import { MAX_OWNED_FIELDS } from '../../src/kube/core/objects/value-count.ts'
import { nodePemChecks } from '../../src/pki/io/pem-checks.ts'
import { createCA, issueCertificate } from '../../src/pki/io/pki.ts'
import { ALL_SETTINGS, CONFIG_FILE } from '../../src/process/config/config.ts'
import { createProgram } from '../../src/program/cli/program.ts'
import { POD_PROTECTOR_SCHEMA } from '../../src/protection/api/schema.ts'
import { documentationErrors, explanationsOf } from '../harness/docs/documented-fields.ts'
import { FOLDERS } from '../suites.ts'

const ROOT = resolve(import.meta.dirname, '../..')
const README = read('README.md')
const UPSTREAM_CLUSTER_PAGE = read('docs/upstream-cluster.md')
const DEGRADE = read('docs/degrade.md')
const PROTECTION = read('docs/protection.md')
const COMMANDS = read('docs/commands.md')
const SETTINGS_PAGE = read('docs/settings.md')
const METRICS_PAGE = read('docs/metrics.md')
const REFUSALS = read('docs/refusals.md')
const CONNECTIONS = read('docs/connections.md')
const API_SERVER = read('docs/embedded-api-server.md')
const OPERATING = read('docs/operating.md')
const SECURITY = read('docs/security.md')
const ARCHITECTURE = read('docs/architecture.md')
const LIMITS = read('docs/limits.md')
const LIFE = read('docs/life-of-a-request.md')
/** Every subject, and rooms with words of their own. */
const ROOMS = [
  'src/kit',
  'src/http2',
  'src/kube',
  'src/pki',
  'src/gateway',
  'src/gateway/request',
  'src/gateway/core/admission',
  'src/gateway/core/policy',
  'src/gateway/core/limits',
  'src/process',
  'src/cli',
  'src/login',
  'src/apiserver',
  'src/apiserver/io/store',
  'src/admin',
  'src/audit',
  'src/protection',
  'src/protection/core',
  'src/protection/controllers/ledger',
  'src/protection/controllers/aggregator',
  'src/scaling',
  'src/scale-up-guard',
  'src/cache',
  'src/federation',
  'src/incidents',
  'src/grants',
  'src/sessions',
  'src/insight',
  'src/traces',
  'src/program',
  'src/demo',
]
const PAGES = [
  'README.md',
  ...ROOMS.map((room) => join(room, 'README.md')),
  'CONTRIBUTING.md',
  'deploy/helm/portcullis/README.md',
  ...readdirSync(join(ROOT, 'docs'), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.md'))
    .map((name) => join('docs', name)),
]

/** What the spine calls that is no step of a request. */
const NOT_STEPS = new Set(['refuse', 'policyOf', 'isRefusal', 'isWatch', 'headerValue', 'sessionKind', 'giveShare'])
/** Steps that are no functions of other files: what the spine calls for them. */
const OWN_STEPS = { lookup: /\blookup\(/, admit: /\.filters\.run\(/, recheck: /\brecheckLater\(/ }
/** Headings of life-of-a-request.md for what happens around the spine. */
const AROUND_THE_SPINE = ['Before the spine', 'observe']

function read(path: string): string {
  return readFileSync(join(ROOT, path), 'utf8')
}

/** Texts of the headings of one level. */
function headings(page: string, level: number): string[] {
  return [...page.matchAll(/^(#+) (.+)$/gm)]
    .filter(([, marks]) => marks?.length === level)
    .map((match) => match[2] ?? '')
}

/** Cells of the rows of every table, as written. */
function tableRows(page: string): string[][] {
  const lines = page.split('\n').filter((line) => line.startsWith('|') && !/^\|[-|]+\|$/.test(line))
  return lines.map((line) =>
    line
      .slice(1, -1)
      .split(/(?<!\\)\|/)
      .map((cell) => cell.trim()),
  )
}

function codeOf(cell: string | undefined): string {
  return /^`([^`]+)`$/.exec(cell ?? '')?.[1] ?? ''
}

/** What the spine calls: functions that other files export, by the names they have there, and its own steps. */
function spineSteps(): string[] {
  const source = read('src/gateway/request/serve.ts')
  const imported = [...source.matchAll(/^import \{([^}]*)\} from '(?:\.|\.\.\/core)\/[^']+'/gm)]
    .flatMap((match) => (match[1] ?? '').split(','))
    .map((name) => name.trim())
    .filter((name) => name !== '' && !name.startsWith('type '))
    .map((name) => name.split(' as ').at(-1) ?? '')
  const body = source.slice(source.indexOf('function serve('), source.indexOf('function goOnLater'))
  const called = imported.filter((name) => new RegExp(`\\b${name}\\(`).test(body))
  const own = Object.entries(OWN_STEPS).flatMap(([name, call]) => (call.test(body) ? [name] : []))
  return [...own, ...called].filter((name) => /^[a-z]/.test(name) && !NOT_STEPS.has(name) && !name.endsWith('Message'))
}

test('life of a request has one heading for each step of the spine, and no other', () => {
  const steps = spineSteps()
  assert.ok(steps.includes('authenticate') && steps.includes('forward'), `steps found: ${steps.join(', ')}`)
  assert.deepEqual(new Set(headings(LIFE, 2)), new Set([...steps, ...AROUND_THE_SPINE]))
})

test('the page of state machines draws the phases of a request as they are', () => {
  const page = read('docs/state-machines.md')
  const [, drawn = ''] = /\[gateway\/request\/exchange\/state\.ts\].*?```\n(.*?)```/s.exec(page) ?? []
  const arrows = new Set<string>()
  for (const line of drawn.split('\n')) {
    const states = line.trim().split(/ ──[^─▸]+──▸ /)
    for (const [i, to] of states.slice(1).entries()) arrows.add(`${states[i]} -> ${to}`)
  }
  const allowed = PHASES.flatMap((from) => PHASES.filter((to) => canBecome(from, to)).map((to) => `${from} -> ${to}`))
  assert.deepEqual(arrows, new Set(allowed))
})

test('life of a request has the filters in their order', () => {
  assert.deepEqual(headings(LIFE, 3), FILTER_ORDER)
})

test('settings has every setting with its variable and default, and no other', () => {
  const rows = Map.groupBy(tableRows(SETTINGS_PAGE), (row) => codeOf(row[0]))
  for (const { flag, env, defaultText } of ALL_SETTINGS) {
    const [row, ...others] = rows.get(flag) ?? []
    assert.ok(row !== undefined, `docs/settings.md: no row for ${flag}`)
    assert.equal(others.length, 0, `docs/settings.md: several rows for ${flag}`)
    assert.equal(codeOf(row[1]), env, flag)
    assert.equal(codeOf(row[2]), defaultText, `default of ${flag}`)
  }
  const flags = new Set(ALL_SETTINGS.map(({ flag }) => flag))
  const others = [...rows.keys()].filter((code) => code !== '' && !flags.has(code))
  assert.deepEqual(others, [], 'rows for settings that are not there')
  assert.ok(SETTINGS_PAGE.includes(`\`${CONFIG_FILE.flag}\``) && SETTINGS_PAGE.includes(`\`${CONFIG_FILE.env}\``))
})

test('security gives the defaults of settings as they are, and names metrics that exist', () => {
  const defaults = new Map(ALL_SETTINGS.map(({ flag, defaultText }) => [flag, defaultText]))
  const ofProtection = tableRows(PROTECTION).map((row) => codeOf(row[0]))
  const names = new Set([...METRICS.map(({ name }) => name), ...ofProtection])
  const codesOf = (text = ''): string[] => [...text.matchAll(/`([^`]+)`/g)].map(([, code = '']) => code)
  const [, part = ''] = SECURITY.split('## What each limit protects')
  const rows = tableRows(part.slice(0, part.indexOf('\n## '))).slice(1)
  assert.ok(rows.length > 15, 'the table is found')
  for (const [limit, setting, shown, , , , counter] of rows) {
    const flags = codesOf(setting).filter((code) => code.startsWith('--'))
    const given = codesOf(shown)
    if (given.length > 0)
      assert.deepEqual(
        given,
        flags.map((flag) => defaults.get(flag)),
        limit,
      )
    for (const name of codesOf(counter)) assert.ok(names.has(name), `${limit}: ${name}`)
  }
})

test('the Helm chart has every setting as a value, and the CRDs, rights and webhooks of deploy/', () => {
  for (const [path, text] of chartFiles())
    assert.equal(read(path), text, `${path} is out of date; to regenerate it: ${UPDATE_COMMAND}`)
})

test('metrics has every metric once, with its type and labels, and no other', async () => {
  const described = new Map(METRICS.map(({ name, type, labels }) => [name, [type, labels.join(', ')]]))
  assert.ok(described.size > 40, 'the descriptors are found')
  const registered = [...(await createMetrics().text()).matchAll(/^# TYPE (portcullis_(?!process_|nodejs_)\w+) /gm)]
  for (const [, name = ''] of registered) assert.ok(described.has(name), name)
  const rows = tableRows(METRICS_PAGE).filter((row) => codeOf(row[0]).startsWith('portcullis_'))
  assert.equal(rows.length, described.size, 'one row for each')
  assert.deepEqual(new Map(rows.map((row) => [codeOf(row[0]), [row[1] ?? '', row[2] ?? '']])), described)
})

test('refusals has every refusal with its code and whether it may be sent again', () => {
  const rows = tableRows(REFUSALS)
    .filter((row) => codeOf(row[0]) in REFUSAL_TABLE)
    .map((row) => [codeOf(row[0]), row[1], row[2]])
  const expected = Object.entries(REFUSAL_TABLE).map(([reason, { code, retryAfter }]) => [
    reason,
    String(code),
    retryAfter ? 'yes' : 'no',
  ])
  assert.deepEqual(rows, expected)
})

/** Rows of the table of limits: value, constant, file, and what counts. */
function limitRows(): { value: string; constant: string; file: string; counter: string }[] {
  return tableRows(LIMITS)
    .filter((row) => /^[A-Z_]+(\.\w+)*$/.test(codeOf(row[2])))
    .map((row) => ({ value: row[1] ?? '', constant: codeOf(row[2]), file: codeOf(row[3]), counter: row[5] ?? '' }))
}

/** The number that a file gives to `NAME`, or to `NAME.member.member`; undefined = there is no such constant. */
function constantOf(file: string, path: string): number | undefined {
  const [name = '', ...members] = path.split('.')
  const source = read(file)
  const start = source.search(new RegExp(`\\bconst ${name}\\b`))
  if (start < 0) return undefined
  const line = source.slice(start, source.indexOf('\n', start))
  let text = line.endsWith('{') ? source.slice(start, source.indexOf('\n}', start)) : line
  for (const member of members) {
    const at = text.search(new RegExp(`\\b${member}: `))
    if (at < 0) return undefined
    text = text.slice(at).replace(`${member}: `, '= ')
  }
  const [, product] = /= ([\d_]+(?: \* [\d_]+)*)(?:$|[,\n ])/.exec(text) ?? []
  return product?.split('*').reduce((all, factor) => all * Number(factor.replaceAll('_', '')), 1)
}

test('the sizes and limits in limits.md are those of the code', () => {
  const rows = limitRows()
  assert.ok(rows.length > 80, 'the table is found')
  for (const { value, constant, file } of rows) {
    const number = constantOf(file, constant)
    assert.ok(number !== undefined, `${file} has no constant ${constant}`)
    assert.equal(amount(value), number, `${constant} in ${file}`)
  }
})

test('the page of the embedded API server gives the sizes of objects as they are in the code', () => {
  const shown = new Map(tableRows(API_SERVER).map(([what = '', most = '']) => [what, most]))
  const bytes = (name: string): number => constantOf('src/apiserver/http/read-body.ts', name) ?? Number.NaN
  const yaml = (name: string): number => constantOf('src/kube/core/objects/strict-decode.ts', name) ?? Number.NaN
  const [values, owned] = [MAX_VALUES, MAX_OWNED_FIELDS].map((most) => most.toLocaleString('en'))
  const expected: Readonly<Record<string, string>> = {
    "a request's body": `${bytes('MAX_BODY_BYTES') / 2 ** 20} MiB; ${bytes('MAX_SMALL_BYTES') / 1024} KiB for a deletion or a review (413)`,
    'values (texts, numbers, lists, maps) of an object': `${values} (413), of which ${owned} may be fields with owners of their own`,
    'YAML that is not JSON': `${yaml('MAX_YAML_LENGTH') / 1024} KiB; ${yaml('MAX_SMALL_YAML_LENGTH') / 1024} KiB for a deletion or a review (413)`,
  }
  for (const [what, most] of Object.entries(expected)) assert.ok(shown.get(what)?.startsWith(most), `${what}: ${most}`)
})

test('limits.md has every limit of the HTTP/2 engine', () => {
  const listed = new Set(limitRows().map(({ file, constant }) => `${file} ${constant}`))
  const limits = [
    ...numbersOf('src/http2/limits.ts', { SERVER_LIMITS, CLIENT_SIDE_LIMITS }),
    ...numbersOf('src/http2/budget.ts', { ...budget }),
    ...['slabs', 'chunk-queue', 'sender', 'header-frames', 'streams', 'hpack/literals'].flatMap(constantsIn),
  ]
  assert.ok(limits.length > 40, 'the limits are found')
  // There is nothing to say to a server about its streams, windows of requests do not grow, high-water marks have their own rows, and a round or a scratch buffer is no limit.
  const none =
    /CLIENT_SIDE_LIMITS\.maxConcurrentStreams|SERVER_LIMITS\.streamWindowGrowthBytes|highWaterBytes|MIN_ROUND|COMPACT_AT|LARGEST_UPDATE_BYTES|MAX_INTEGER|SCRATCH_BYTES/
  assert.deepEqual(
    limits.filter((limit) => !none.test(limit) && !listed.has(limit)),
    [],
  )
})

/** `FILE NAME` and `FILE NAME.member` of the numbers among the exports of a file. */
function numbersOf(file: string, exported: Readonly<Record<string, unknown>>): string[] {
  return Object.entries(exported).flatMap(([name, value]) => {
    if (typeof value === 'number') return [`${file} ${name}`]
    if (typeof value !== 'object' || value === null) return []
    return numbersOf(file, Object.fromEntries(Object.entries(value).map(([key, one]) => [`${name}.${key}`, one])))
  })
}

function constantsIn(name: string): string[] {
  const file = `src/http2/${name}.ts`
  return [...read(file).matchAll(/^(?:export )?const ([A-Z_]+) = \d/gm)].map((match) => `${file} ${match[1] ?? ''}`)
}

test('every kind of abuse is in connections, next to the limit that it exceeds', async () => {
  const text = await createMetrics().text()
  const kinds = new Set(
    [...text.matchAll(/http2_abuse_total\{side="client",kind="([\w-]+)"/g)].map((match) => match[1]),
  )
  assert.ok(kinds.size > 10, 'the kinds are found')
  const [, told = ''] = CONNECTIONS.split('\n## HTTP/2 abuse\n')
  const inConnections = tableRows(told.split('\n## ')[0] ?? '').flatMap((row) =>
    [...(row[0] ?? '').matchAll(/`([\w-]+)`/g)].map(([, kind]) => kind),
  )
  assert.deepEqual(new Set(inConnections), kinds)
  const engine = readdirSync(join(ROOT, 'src/http2'), { recursive: true, encoding: 'utf8' }).filter(
    (name) => name.endsWith('.ts') && !name.endsWith('.test.ts'),
  )
  const below = ['src/gateway/io/socket/engine-socket.ts', 'src/gateway/io/listener/connections.ts']
  const counted = [...engine.map((name) => `src/http2/${name}`), ...below]
    .flatMap((file) => [...read(file).matchAll(/counters\.(\w+)\+\+|\babuse\('(\w+)'[,)]/g)])
    .map(([, field, abuse]) => (field ?? abuse ?? '').replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`))
    .filter((kind) => kinds.has(kind))
  const beside = limitRows().flatMap(({ counter }) => [...counter.matchAll(/`([a-z-]+)`/g)].map(([, kind]) => kind))
  assert.deepEqual(new Set(beside), new Set(counted))
})

test('the memory of a connection in limits.md follows from the limits', () => {
  const { maxConcurrentStreams, maxHeaderListBytes, connectionWindowBytes, maxFrameBytes } = SERVER_LIMITS
  const slack = SERVER_LIMITS.blockSlackBytes
  const replay = constantOf('src/gateway/request/exchange/request-body.ts', 'REPLAY_LIMIT_BYTES') ?? Number.NaN
  assert.ok(replay <= HIGH_WATER_BYTES, 'what is kept is what waits in the stream, or less')
  const heads = maxConcurrentStreams * maxHeaderListBytes
  const requests = maxConcurrentStreams * HIGH_WATER_BYTES
  const largestWindow = CLIENT_SIDE_LIMITS.streamWindowBytes + CLIENT_SIDE_LIMITS.streamWindowGrowthBytes
  const answers = maxConcurrentStreams * (ANSWER_WATER_BYTES + largestWindow)
  const block = maxHeaderListBytes + slack
  const output = 3 * SERVER_LIMITS.maxBacklogBytes
  const hpack =
    2 * SERVER_LIMITS.headerTableBytes + 2 * (constantOf('src/http2/hpack/literals.ts', 'MAX_OCTETS') ?? Number.NaN)
  const parts = [heads, requests, answers, connectionWindowBytes, block, maxFrameBytes, output, hpack]
  const [, part = ''] = LIMITS.split('## Memory of a connection')
  const rows = tableRows(part).slice(1)
  assert.deepEqual(
    rows.map(([, value = '']) => amount(value)),
    parts,
  )
  const mib = (bytes: number): string => (bytes / 2 ** 20).toFixed(1).replace('.0', '')
  const perRequest = (heads + requests + answers) / maxConcurrentStreams
  const rest = parts.slice(3).reduce((sum, bytes) => sum + bytes, 0)
  const all = Math.round((heads + requests + answers + rest) / 2 ** 20)
  const sum = `${mib(perRequest)} MiB for each open request (the first three rows) and ${mib(rest)} MiB on top, together ${all} MiB`
  assert.ok(part.replace(/\s+/g, ' ').includes(sum), sum)
  const answerBlock = 2 * (CLIENT_SIDE_LIMITS.maxHeaderListBytes + CLIENT_SIDE_LIMITS.blockSlackBytes)
  assert.ok(part.replace(/\s+/g, ' ').includes(`block of up to ${answerBlock / 2 ** 20} MiB`))
  assert.ok(part.replace(/\s+/g, ' ').includes(`at most ${largestWindow / 1024} KiB for each stream`))
})

/** `256 KiB` -> 262144, `10 s` -> 10000 (milliseconds), `400` -> 400. */
function amount(text: string): number {
  const sizes = { '': 1, KiB: 1024, MiB: 1024 * 1024 }
  const units: Readonly<Record<string, number>> = { ...sizes, ms: 1, s: 1000, h: 3_600_000, days: 86_400_000 }
  const [, digits = '', unit = ''] = /^(\d+(?:\.\d+)?) ?(\w*)$/.exec(text) ?? []
  return Number(digits) * (units[unit] ?? Number.NaN)
}

/** Every YAML block of a page, parsed. */
function yamlBlocks(page: string): unknown[] {
  return [...page.matchAll(/^```yaml\n([\s\S]*?)^```/gm)].flatMap((match) =>
    parseAllDocuments(match[1] ?? '').map((document) => {
      assert.deepEqual(document.errors, [])
      return document.toJS() as unknown
    }),
  )
}

function keysOf(value: unknown, keys: Set<string> = new Set()): Set<string> {
  if (typeof value !== 'object' || value === null) return keys
  for (const [key, child] of Object.entries(value)) {
    if (!Array.isArray(value)) keys.add(key)
    keysOf(child, keys)
  }
  return keys
}

function fieldsOf(schema: JsonSchema): string[] {
  const own = Object.entries(schema.properties ?? {}).flatMap(([name, child]) => [name, ...fieldsOf(child)])
  return schema.items === undefined ? own : [...own, ...fieldsOf(schema.items)]
}

test('the README is read in five minutes, and leads to every page', () => {
  const lines = README.split('\n').length - 1
  assert.ok(lines <= 200, `${lines} lines`)
  const pages = readdirSync(join(ROOT, 'docs')).filter((name) => name.endsWith('.md'))
  assert.ok(pages.length > 8, 'the pages are found')
  for (const page of pages) assert.match(README, new RegExp(`\\]\\(docs/${page}[)#]`), page)
})

test('operating is read in two minutes, and its table leads to pages that begin with what they answer', () => {
  const lines = OPERATING.split('\n').length - 1
  assert.ok(lines < 120, `${lines} lines`)
  const [, table = ''] = OPERATING.split('\n## Which page answers what\n')
  const pages = new Set([...table.matchAll(/\]\(([\w-]+\.md)/g)].map(([, page = '']) => page))
  assert.ok(pages.size > 25, 'the pages are found')
  for (const page of pages) {
    if (page === 'runbooks.md' || page === 'incidents.md') continue
    assert.match(read(`docs/${page}`), /^# .+\n\nThis page (says|lists|gives|shows|explains) /, page)
  }
})

test('the docs explain every field of an UpstreamCluster', () => {
  const page = UPSTREAM_CLUSTER_PAGE
  const keys = new Set(yamlBlocks(page).flatMap((block) => [...keysOf(block)]))
  const inProse = (name: string): boolean => page.includes(`\`${name}\``) || page.includes(`${name}: {`)
  const missing = fieldsOf(UPSTREAM_CLUSTER_SPEC_SCHEMA).filter((name) => !keys.has(name) && !inProse(name))
  assert.deepEqual([...new Set(missing)], [])
})

/** The first manifest of the page. */
function manifestOf(page: string): string {
  return manifestsOf(page)[0] ?? ''
}

/** Whole objects. */
function manifestsOf(page: string): readonly string[] {
  return [...page.matchAll(/^```yaml\n(apiVersion:[\s\S]*?)^```/gm)].map(([, manifest = '']) => manifest)
}

test('the docs give every default and range of an UpstreamCluster as its schema has it', () => {
  const said = new Map(manifestsOf(UPSTREAM_CLUSTER_PAGE).flatMap((manifest) => [...explanationsOf(manifest)]))
  const namespace = impliedDefault(fieldOf(fieldOf(CLIENT_CONFIG_SCHEMA, 'caRef'), 'namespace'))
  assert.ok(UPSTREAM_CLUSTER_PAGE.includes(`\`namespace\` defaults to \`${String(namespace)}\``))
  const inProse = (path: string): boolean => path.endsWith('Ref.namespace')
  assert.deepEqual(documentationErrors(said, UPSTREAM_CLUSTER_SPEC_SCHEMA, 'spec', inProse), [])
})

test('the table of PodProtector has every field of its spec, and no field or default that the schema has not', () => {
  const rows = tableRows(PROTECTION)
    .map(([field = '', meaning = '']) => [/^`([^`]+)`/.exec(field)?.[1] ?? '', meaning] as const)
    .filter(([path]) => /^(spec|status|\.\.\.buckets)\b/.test(path))
    .map(
      ([path, meaning]) =>
        [path.replace('...buckets', 'status.cells.admissionHistory.buckets').replaceAll('[]', ''), meaning] as const,
    )
  const said = new Map(rows)
  const { spec, status } = POD_PROTECTOR_SCHEMA.properties ?? {}
  assert.ok(spec !== undefined && status !== undefined)
  assert.deepEqual(documentationErrors(said, spec, 'spec'), [])
  assert.deepEqual(documentationErrors(said, status, 'status'), [])
  const listed = [...said.keys()].filter((path) => path.startsWith('spec.'))
  const { admissionHistoryConfig, ...others } = spec.properties ?? {}
  const overrides = Object.keys(admissionHistoryConfig?.properties ?? {}).map(
    (name) => `admissionHistoryConfig.${name}`,
  )
  const fields = [...Object.keys(others), ...overrides].map((name) => `spec.${name}`)
  assert.deepEqual(listed, fields)
})

test('the UpstreamCluster of the docs is valid: no error, no warning', () => {
  const whole = yamlBlocks(UPSTREAM_CLUSTER_PAGE).filter((block) => keysOf(block).has('kind'))
  assert.equal(whole.length, 2)
  for (const manifest of whole) assert.deepEqual(checkUpstreamCluster(manifest, nodePemChecks), [])
})

test('check and explain take the docs at their word', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'portcullis-docs-'))
  try {
    const text = manifestOf(UPSTREAM_CLUSTER_PAGE)
    writeFileSync(join(dir, 'prod.yaml'), text)
    writeNamedFiles(dir, text)
    const lines: string[] = []
    const out = (line: string): void => void lines.push(line)
    assert.equal(await check({ dir, output: 'text', out }), 0, lines.join(''))
    const request = { method: 'GET', target: '/api/v1/pods', host: 'x.prod.example.com', user: 'alice' }
    const explained = {
      configDir: dir,
      stdin: false,
      request,
      output: 'json',
      input: noLines(),
      err: out,
      now: () => 0,
    } as const
    lines.length = 0
    assert.equal(await explain({ ...explained, out }), 0)
    const { cluster, flowControl, decision } = JSON.parse(lines.join(''))
    assert.deepEqual(
      { cluster, flowControl, decision },
      { cluster: 'prod', flowControl: 'pod-lists', decision: 'forward' },
    )
  } finally {
    rmSync(dir, { recursive: true })
  }
})

/** Every file that the object refers to: certificates of one pair, so that keys fit. */
function writeNamedFiles(dir: string, text: string): void {
  const ca = createCA({ commonName: 'docs' })
  const pair = issueCertificate(ca, { commonName: 'docs', usage: 'both', dnsNames: ['prod.example.com'] })
  for (const [, path = ''] of text.matchAll(/\{ file: ([^ }]+) \}/g)) {
    mkdirSync(dirname(join(dir, path)), { recursive: true })
    const pem = path.endsWith('.key') ? pair.keyPem : path.endsWith('ca.crt') ? ca.certPem : pair.certPem
    writeFileSync(join(dir, path), pem)
  }
}

async function* noLines(): AsyncGenerator<string> {}

test('the page of the switch has every mode, from the mildest to the strictest', () => {
  const header = DEGRADE.split('\n').findIndex((line) => line.startsWith('| `mode` |'))
  const table = DEGRADE.split('\n').slice(header)
  const rows = tableRows(table.slice(0, table.indexOf('')).join('\n')).slice(1)
  assert.deepEqual(
    rows.map((row) => codeOf(row[0])),
    DEGRADE_MODES,
  )
})

test('the refusal that README and docs show is the one that the switch gives', () => {
  const [switched] = yamlBlocks(DEGRADE).filter((block) => JSON.stringify(block).includes('INC-4711'))
  const { spec } = switched as Pick<UpstreamCluster, 'spec'>
  const message = degradeMessage('prod', compileDegrade(spec.degrade ?? {}, false), spec.degrade?.mode ?? 'Off')
  for (const page of [README, DEGRADE]) {
    assert.ok(page.replace(/\s+/g, ' ').includes(`Error from server (ServiceUnavailable): ${message}`), message)
  }
})

/** Each command that can be run, as `protect install`, with its flags. */
function allCommands(command: CommandUnknownOpts, path: readonly string[] = []): [string, CommandUnknownOpts][] {
  if (command.commands.length === 0) return [[path.join(' '), command]]
  return command.commands.flatMap((one) => allCommands(one, [...path, one.name()]))
}

test('commands has every command, and no command or flag that is not there', () => {
  const nothing = (): never => assert.fail('no command runs')
  const commands = new Map(
    allCommands(
      createProgram(ALL_SETTINGS, {
        version: '',
        settings: nothing,
        out: nothing,
        err: nothing,
        input: noLines(),
        now: nothing,
        serve: nothing,
        demo: nothing,
        done: nothing,
      }),
    ),
  )
  assert.ok(commands.has('serve') && commands.has('protect dry-run'), 'the commands are found')
  const described = new Set<string>()
  for (const [cell = ''] of tableRows(COMMANDS)) {
    const [, first, second] = /^`portcullis ([a-z-]+)(?: ([a-z-]+))?/.exec(cell) ?? []
    if (first === undefined) continue
    const name = [`${first} ${second}`, first].find((one) => commands.has(one))
    assert.ok(name !== undefined, `docs/commands.md: there is no command ${cell}`)
    described.add(name)
    const flags = new Set(commands.get(name)?.options.flatMap(({ short, long }) => [short, long]))
    for (const [flag] of cell.matchAll(/(?<![\w-])--?[a-z][\w-]*/gi))
      assert.ok(flags.has(flag), `${name}: no flag ${flag}`)
  }
  assert.deepEqual(described, new Set(commands.keys()))
})

test('every subject, and a room with words of its own, begins with a README of at most 15 lines', () => {
  const subjects = readdirSync(join(ROOT, 'src'), { withFileTypes: true }).filter((one) => one.isDirectory())
  assert.deepEqual(
    subjects.map(({ name }) => `src/${name}`).filter((subject) => !ROOMS.includes(subject)),
    [],
  )
  for (const room of ROOMS) {
    const page = read(join(room, 'README.md'))
    assert.ok(page.startsWith(`# ${room}: `), room)
    assert.ok(page.split('\n').length - 1 <= 15, `${room}: ${page.split('\n').length - 1} lines`)
    const isSubject = room.split('/').length === 2
    const [, tests = ''] = page.split('- **Tests**')
    for (const folder of isSubject ? (FOLDERS[room.slice('src/'.length)] ?? []) : [])
      assert.match(tests, new RegExp(`test/(?:\\{[\\w,-]*)?\\b${folder}\\b`), `${room}: test/${folder}/`)
    for (const part of ['Words', 'Rules', 'Read first', ...(isSubject ? ['Tests'] : [])])
      assert.ok(page.includes(`- **${part}**`), `${room}: ${part}`)
    if (isSubject) assert.ok(page.includes(`\`npm run test:subject -- ${room.slice('src/'.length)}\``), room)
    const files = [...page.matchAll(/`((?:[\w-]+\/)*[\w.-]+\.ts)`/g)].map(([, file = '']) => file)
    assert.ok(files.length > 0, room)
    const missing = files.filter((file) => !existsSync(join(ROOT, room, file)) && !existsSync(join(ROOT, file)))
    assert.deepEqual(missing, [], room)
    assert.ok(ARCHITECTURE.includes(`(../${room}/README.md)`), `docs/architecture.md does not lead to ${room}`)
  }
})

/** Whether a part of the table names the folder; a file in it does not count. */
function named(part: string, room: string): boolean {
  return new RegExp(`\`(?:src/)?(?:[\\w-]+/)*${room}/(?:[\\w-]+/)*\``).test(part)
}

test('the house plan names every room', () => {
  const [, plan = ''] = /^\| folder \| holds \|.*\n([\s\S]*?)\n\n/m.exec(ARCHITECTURE) ?? []
  const folders = (dir: string): string[] =>
    readdirSync(join(ROOT, dir), { withFileTypes: true }).flatMap((one) => (one.isDirectory() ? [one.name] : []))
  const rows = new Map(plan.split(/^(?=\| \*\*`src)/m).map((part) => [/`src\/([\w-]+)\/`/.exec(part)?.[1] ?? '', part]))
  const missing = folders('src').flatMap((subject) => {
    const layers = folders(join('src', subject))
    const rooms = layers.flatMap((layer) => [layer, ...folders(join('src', subject, layer))])
    return rooms.flatMap((room) => (named(rows.get(subject) ?? '', room) ? [] : [`src/${subject}: ${room}`]))
  })
  assert.deepEqual(missing, [], 'a row of the table in docs/architecture.md is to name it')
})

test('pages that the code names exist', () => {
  const broken: string[] = []
  for (const folder of ['src', 'test', 'bench', 'build']) {
    const files = readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
    for (const file of files.filter((name) => /\.tsx?$/.test(name)).map((name) => join(folder, name))) {
      for (const [page] of read(file).matchAll(/(?<![\w/.-])docs\/[\w/-]+\.md/g)) {
        if (!existsSync(join(ROOT, page))) broken.push(`${file}: ${page}`)
      }
    }
  }
  assert.deepEqual(broken, [])
})

test('links between pages lead somewhere', () => {
  const broken: string[] = []
  for (const page of PAGES) {
    for (const [, target = ''] of read(page).matchAll(/\]\(([^)\s]+)\)/g)) {
      if (/^https?:/.test(target)) continue
      const [path = '', anchor = ''] = target.split('#')
      const file = path === '' ? page : join(dirname(page), path)
      if (!existsSync(join(ROOT, file))) broken.push(`${page}: ${target}`)
      else if (anchor !== '' && !anchors(read(file)).has(anchor)) broken.push(`${page}: ${target}`)
    }
  }
  assert.deepEqual(broken, [])
})

test('files and scripts that the pages name exist', () => {
  const scripts = Object.keys(JSON.parse(read('package.json')).scripts)
  const missing: string[] = []
  for (const page of PAGES) {
    const text = read(page)
    for (const [, path = ''] of text.matchAll(/`((?:src|test|config|deploy|docs)\/[\w./-]+)`/g)) {
      if (!/NAME|NNNN/.test(path) && !existsSync(join(ROOT, path))) missing.push(`${page}: ${path}`)
    }
    for (const [, script = ''] of text.matchAll(/`npm run ([\w:]+)`/g)) {
      if (!scripts.includes(script)) missing.push(`${page}: npm run ${script}`)
    }
  }
  assert.deepEqual(missing, [])
})

function anchors(page: string): Set<string> {
  const texts = [...page.matchAll(/^#+ (.+)$/gm)].map((match) => match[1] ?? '')
  return new Set(texts.map(anchorOf))
}
