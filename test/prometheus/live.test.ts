// A real Prometheus scrapes a busy gateway over TLS with a token: no panel of a dashboard is empty, every metric and label that a dashboard or a
// rule names is there, and alerts fire when the trouble is there that they tell of.

import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { parse } from 'yaml'
import { METRICS } from '../../src/gateway/metrics/descriptors.ts'
import { SECRETS } from '../../src/kube/api/kinds/secret-kind.ts'
import type { Json } from '../harness/clients/control-client.ts'
import { PATIENT } from '../harness/patience.ts'
import { reply } from '../harness/upstreams/stub-upstream.ts'
import { waitFor } from '../harness/wait.ts'
import { type BusyGateway, startBusyGateway } from './busy-gateway.ts'
import { NOT_MADE_HERE, NOT_SHOWN, PROMTOOL_EXCEPTIONS } from './metrics-left-out.ts'
import { type Alert, startPrometheus, type TestPrometheus } from './prometheus.ts'

const ROOT = resolve(import.meta.dirname, '../..')
const GRAFANA = join(ROOT, 'deploy/grafana')
const TIMEOUT = { timeoutMs: 180_000, intervalMs: 250 }
const PREFIX = 'portcullis_'
let busy: BusyGateway
let stopped = false
let prometheus: TestPrometheus

before(async () => {
  busy = await startBusyGateway()
  const bearer = { type: 'Bearer', credentials_file: busy.tokenFile }
  const base = {
    job_name: 'portcullis',
    scheme: 'https',
    tls_config: { ca_file: busy.healthCaFile },
    authorization: bearer,
  }
  const [other, denied] = [`127.0.0.1:${busy.replica.adminPort}`, `127.0.0.1:${busy.gateway.healthPort}`]
  const relabelled = { relabel_configs: [{ target_label: 'job', replacement: 'portcullis' }] }
  prometheus = await startPrometheus([
    { ...base, static_configs: [{ targets: [denied] }] },
    { job_name: 'replica', static_configs: [{ targets: [other] }], ...relabelled },
    { ...base, job_name: 'without-token', authorization: undefined, static_configs: [{ targets: [denied] }] },
  ])
}, PATIENT)
after(async () => {
  await prometheus?.stop()
  if (!stopped) await busy?.stop()
})

const dashboards = new Map<string, Json>(
  readdirSync(GRAFANA).map((name) => [name, JSON.parse(readFileSync(join(GRAFANA, name), 'utf8'))]),
)

/** What a user who has chosen everything sees. */
function filled(expression: string): string {
  return expression.replaceAll(/\$(cluster|schema|cell|by)\b/g, '.*')
}

function expressionsOf({ panels }: Json): { title: string; expression: string }[] {
  return panels.flatMap(({ title, targets = [] }: Json) =>
    targets.map(({ expr }: Json) => ({ title, expression: filled(expr) })),
  )
}

const rules: Json[] = parse(readFileSync(join(ROOT, 'deploy/prometheus/rules.yaml'), 'utf8')).groups.flatMap(
  (group: Json) => group.rules,
)

const alertNames = new Set(rules.flatMap(({ alert }) => (alert === undefined ? [] : [alert.toLowerCase()])))

test('the scrape: with its token over TLS, and not without', PATIENT, async () => {
  await waitFor(
    'targets',
    async () => {
      const { activeTargets } = await prometheus.get('targets')
      const health = Object.fromEntries(activeTargets.map(({ scrapePool, health: is }: Json) => [scrapePool, is]))
      assert.deepEqual(health, { portcullis: 'up', replica: 'up', 'without-token': 'down' })
      return true
    },
    TIMEOUT,
  )
})

test("promtool check metrics faults no name but Podseidon's", PATIENT, async () => {
  const bad = '# HELP portcullis_bad x\n# TYPE portcullis_bad counter\nportcullis_bad 1\n'
  const input = `${await busy.metrics()}${bad}`
  const { stdout, stderr } = spawnSync('promtool', ['check', 'metrics'], { input, encoding: 'utf8' })
  const faults = [...`${stdout}${stderr}`.matchAll(/^portcullis_(\w+) /gm)].map(([, name = '']) => name)
  assert.ok(faults.includes('bad'), 'it has looked')
  assert.deepEqual(
    faults.filter((name) => !PROMTOOL_EXCEPTIONS.has(name)),
    ['bad'],
  )
})

describe('dashboards', () => {
  for (const [name, dashboard] of dashboards) {
    test(`${name}: no panel and no variable is empty`, PATIENT, async () => {
      const all = expressionsOf(dashboard)
      assert.ok(all.length > 20, `${all.length} queries`)
      await waitFor(
        `values in every panel of ${name}`,
        async () => {
          const empty: string[] = []
          for (const { title, expression } of all) {
            const samples = await prometheus.query(expression)
            if (!samples.some(({ value }) => Number.isFinite(value))) empty.push(`${title}: ${expression}`)
          }
          assert.deepEqual(empty, [])
          return true
        },
        TIMEOUT,
      )
      for (const { type, query } of dashboard.templating.list) {
        if (type !== 'query') continue
        const [, series = '', label = ''] = /^label_values\((.*), (\w+)\)$/.exec(filled(query.query)) ?? []
        const values = await prometheus.get(`label/${label}/values?match[]=${encodeURIComponent(series)}`)
        assert.ok(values.length > 0, query.query)
      }
    })

    test(`${name}: as Grafana has it`, PATIENT, () => {
      assert.match(dashboard.uid, /^portcullis-[a-z]{1,29}$/)
      assert.ok(dashboard.schemaVersion >= 39 && dashboard.title.startsWith('Portcullis / '))
      assert.equal(dashboard.templating.list[0].type, 'datasource')
      const panels: Json[] = dashboard.panels
      assert.equal(new Set(panels.map(({ id }) => id)).size, panels.length)
      for (const { title, type, datasource, fieldConfig, gridPos, links = [], targets = [] } of panels) {
        assert.ok(gridPos.x + gridPos.w <= 24 && gridPos.h > 0, title)
        for (const { url } of links) assert.ok(alertNames.has(url.replace('docs/runbooks.md#', '')), `${title}: ${url}`)
        if (type === 'row' || type === 'text') continue
        assert.match(datasource.uid, /^\$\{datasource\}$/, title)
        assert.ok(fieldConfig.defaults.unit !== undefined && fieldConfig.defaults.thresholds !== undefined, title)
        assert.equal(new Set(targets.map(({ refId }: Json) => refId)).size, targets.length, title)
      }
    })
  }
})

/** Name without prefix -> its labels. */
async function knownMetrics(): Promise<Map<string, Set<string>>> {
  const known = new Map<string, Set<string>>()
  const add = (name: string, labels: readonly string[]): void => {
    const all = known.get(name) ?? new Set(['instance', 'job', 'namespace'])
    for (const label of labels) all.add(label)
    known.set(name, all)
  }
  for (const { name, labels } of METRICS) add(name.slice(PREFIX.length), labels)
  for (const [name, labels] of Object.entries(NOT_MADE_HERE)) add(name, labels)
  const text = await busy.metrics()
  for (const [, name = '', type = ''] of text.matchAll(/^# TYPE portcullis_(\w+) (\w+)$/gm)) {
    add(name, type === 'histogram' ? ['le'] : [])
    const series = new RegExp(`^portcullis_${name}(?:_bucket|_sum|_count)?\\{(.*)\\} `, 'gm')
    for (const [, labels = ''] of text.matchAll(series))
      add(
        name,
        [...labels.matchAll(/(\w+)="/g)].map(([, one = '']) => one),
      )
  }
  return known
}

const SERIES = /(?<![\w:])portcullis_(\w+)(?:\{([^}]*)\})?/g

function usedIn(expression: string, known: ReadonlyMap<string, unknown>): { name: string; selector: string }[] {
  return [...expression.matchAll(SERIES)].map(([, series = '', selector = '']) => {
    const name = known.has(series) ? series : series.replace(/_(bucket|sum|count)$/, '')
    assert.ok(known.has(name), `there is no metric portcullis_${series}: ${expression}`)
    return { name, selector }
  })
}

test(
  'every metric and label that is named is there, and every metric is shown or left out for a reason',
  PATIENT,
  async () => {
    const known = await knownMetrics()
    const variables = [...dashboards.values()].flatMap(({ templating }) => templating.list)
    const recorded = new Set(rules.flatMap(({ record }) => (record === undefined ? [] : [record])))
    const expressions: string[] = [
      ...rules.map(({ expr }) => expr),
      ...[...dashboards.values()].flatMap((one) => expressionsOf(one).map(({ expression }) => expression)),
      ...variables.flatMap(({ type, query }: Json) => (type === 'query' ? [query.query] : [])),
      ...queriesOf('docs/runbooks.md'),
    ]
    assert.ok(expressions.length > 200, String(expressions.length))
    const shown = new Set<string>()
    for (const expression of expressions) {
      for (const [name] of expression.matchAll(/\b\w+:portcullis_\w+:\w+/g))
        assert.ok(recorded.has(name), `no rule records ${name}`)
      const used = usedIn(expression, known)
      const allowed = new Set(used.flatMap(({ name }) => [...(known.get(name) ?? [])]))
      for (const { name, selector } of used) {
        shown.add(name)
        for (const [, label = ''] of selector.matchAll(/(\w+)(?:=~|!~|!=|=)"/g))
          assert.ok(known.get(name)?.has(label), `portcullis_${name} has no label ${label}: ${expression}`)
      }
      if (used.length === 0) continue
      for (const [, list = ''] of expression.matchAll(/\b(?:by|on|group_left) \(([^)]*)\)/g))
        for (const label of list.split(', '))
          assert.ok(label === '' || allowed.has(label), `no label ${label}: ${expression}`)
    }
    const patterns = Object.keys(NOT_SHOWN).map((pattern) => new RegExp(`^(?:${pattern})$`))
    const left = [...known.keys()].filter((name) => !shown.has(name))
    assert.deepEqual(
      left.filter((name) => !patterns.some((pattern) => pattern.test(name))),
      [],
      'neither shown nor in NOT_SHOWN',
    )
    for (const pattern of patterns)
      assert.ok(
        left.some((name) => pattern.test(name)),
        `nothing is left out as ${pattern}`,
      )
  },
)

/** What stands between backticks on a page and is a query. */
function queriesOf(page: string): string[] {
  const text = readFileSync(join(ROOT, page), 'utf8').replaceAll(/```[\s\S]*?```/g, '')
  const code = [...text.matchAll(/`([^`]+)`/g)].map(([, one = '']) => one)
  return code.filter((one) => /portcullis_|cluster:|schema:/.test(one))
}

test('the queries of the runbooks can be asked', PATIENT, async () => {
  const queries = queriesOf('docs/runbooks.md')
  assert.ok(queries.length > 40, String(queries.length))
  for (const query of queries) await prometheus.query(query)
})

/** Until the trouble is there none of these fires. */
const TROUBLE: readonly string[] = [
  'PortcullisConfigProblems',
  'PortcullisDegradeLeftOn',
  'PortcullisEndpointDown',
  'PortcullisErrorBudgetBurnFast',
  'PortcullisErrorBudgetBurnSlow',
  'PortcullisFileNotInForce',
  'PortcullisLimitSaturated',
  'PortcullisNoEndpoint',
  'PortcullisRedisAway',
  'PortcullisThreadDied',
  'PortcullisUpstreamFailing',
]
/** The busy gateway has these troubles all the time. */
const ALREADY: readonly string[] = [
  'PortcullisAutoscalerUnhealthy',
  'PortcullisCertificateExpiresSoon',
  'PortcullisDeletionsRefused',
  'PortcullisIssuerAway',
  'PortcullisLimitRefuses',
  'PortcullisOidcKeysStale',
  'PortcullisReplicasDisagree',
]

async function firing(): Promise<Map<string, Alert>> {
  const alerts = (await prometheus.alerts()).filter(({ state }) => state === 'firing')
  return new Map(alerts.map((alert) => [alert.labels['alertname'] ?? '', alert]))
}

async function fired(names: readonly string[]): Promise<Map<string, Alert>> {
  return waitFor(
    `${names.join(', ')} to fire`,
    async () => {
      const all = await firing()
      assert.deepEqual(
        names.filter((name) => !all.has(name)),
        [],
      )
      return all
    },
    TIMEOUT,
  )
}

describe('alerts fire for real', () => {
  test('what is wrong all the time, and not what is well', PATIENT, async () => {
    const all = await fired(ALREADY)
    assert.deepEqual(
      TROUBLE.filter((name) => all.has(name)),
      [],
    )
    assert.match(all.get('PortcullisCertificateExpiresSoon')?.annotations['summary'] ?? '', /client-ca of edge expires/)
    assert.match(
      all.get('PortcullisLimitRefuses')?.annotations['description'] ?? '',
      /% of the requests under schema .* get 429/,
    )
  })

  test('trouble that is made', PATIENT, async () => {
    const { gateway, edge, second } = busy
    await busy.change('staging', { degrade: { mode: 'ReadOnly', reason: 'a test', shadow: false } })
    writeFileSync(busy.healthCertFile, 'no certificate')
    await busy.redis.kill()
    await gateway.crashThread(1)
    await gateway.objects?.delete(SECRETS, { namespace: 'default', name: 'staging-gateway' })
    // What is asked for in the narrow lane gets no answer, all else a 500.
    for (const stub of [edge, second])
      stub.answer = (request) => void (request.path.includes('/secrets') || reply(request, 500, '{}'))
    const before = [
      'PortcullisEndpointDown',
      'PortcullisErrorBudgetBurnFast',
      'PortcullisErrorBudgetBurnSlow',
      'PortcullisNoEndpoint',
    ]
    await fired(TROUBLE.filter((name) => !before.includes(name)))
    edge.healthy = false
    second.healthy = false
    const all = await fired(before)
    for (const { labels, annotations } of all.values()) {
      const text = Object.values(annotations).join(' ')
      assert.doesNotMatch(text, /<error|<no value>|\{\{/, text)
      assert.equal(annotations['runbook_url'], `docs/runbooks.md#${labels['alertname']?.toLowerCase()}`)
    }
  })

  test('silence', PATIENT, async () => {
    await busy.stop()
    stopped = true
    await fired(['PortcullisAbsent'])
  })
})
