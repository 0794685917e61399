// deploy/prometheus/rules.yaml by promtool: every alert fires where it should, says what an operator needs, and is silent otherwise.

import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { after, test } from 'node:test'
import { parse } from 'yaml'
import { ALERT_CASES, ALSO_FIRE, type AlertCase, MINUTES } from './alert-cases.ts'

const ROOT = resolve(import.meta.dirname, '../..')
const FILE = join(ROOT, 'deploy/prometheus/rules.yaml')
const RUNBOOKS = readFileSync(join(ROOT, 'docs/runbooks.md'), 'utf8')
const dir = mkdtempSync(join(tmpdir(), 'portcullis-rules-'))
after(() => rmSync(dir, { recursive: true, force: true }))

interface Rule {
  readonly alert?: string
  readonly labels: Readonly<Record<string, string>>
  readonly annotations: Readonly<Record<string, string>>
}

const alerts: readonly Rule[] = parse(readFileSync(FILE, 'utf8')).groups.flatMap(({ rules }: { rules: Rule[] }) =>
  rules.filter(({ alert }) => alert !== undefined),
)
const severityOf = new Map(alerts.map(({ alert = '', labels }) => [alert, labels['severity'] ?? '']))

test('promtool finds no fault, and every alert has a severity, what to tell, and a runbook', () => {
  assert.match(execFileSync('promtool', ['check', 'rules', FILE], { encoding: 'utf8' }), /SUCCESS: \d\d rules found/)
  assert.ok(alerts.length > 40)
  for (const { alert = '', labels, annotations } of alerts) {
    assert.match(labels['severity'] ?? '', /^(critical|warning)$/, alert)
    assert.deepEqual(Object.keys(annotations), ['summary', 'description', 'runbook_url'], alert)
    assert.equal(annotations['runbook_url'], `docs/runbooks.md#${alert.toLowerCase()}`)
    const [, section = ''] = RUNBOOKS.split(`\n### ${alert}\n`)
    const [text = ''] = section.split(/\n##+ /)
    for (const part of ['*Means*', '*Look*', '*Do*', '*Afterwards*'])
      assert.ok(text.includes(part), `${alert}: ${part}`)
  }
  const sections = [...RUNBOOKS.matchAll(/^### (\w+)$/gm)].map(([, name = '']) => name)
  assert.deepEqual(new Set(sections), new Set(severityOf.keys()))
})

test('every alert has a firing and a silent case', () => {
  assert.deepEqual(new Set(['PortcullisAbsent', ...Object.keys(ALERT_CASES)]), new Set(severityOf.keys()))
  for (const [name, { fires, silent }] of Object.entries(ALERT_CASES)) {
    assert.ok(Object.keys(fires).length > 0 && Object.keys(silent).length > 0, name)
  }
})

/** `ALERTS` as promtool writes a sample. */
function sample(alertname: string, labels: Readonly<Record<string, string>>): string {
  const all: Record<string, string> = {
    alertname,
    alertstate: 'firing',
    ...labels,
    severity: severityOf.get(alertname) ?? '',
  }
  return `ALERTS{${Object.keys(all)
    .sort()
    .map((name) => `${name}="${all[name]}"`)
    .join(', ')}}`
}

const UP = { portcullis_build_info: `1x${MINUTES}` }
const FIRING = 'ALERTS{alertstate="firing"}'

/** @param also further keys of the test */
function promtool(series: Readonly<Record<string, string>>, also: object): { code: number | null; text: string } {
  const input = Object.entries(series).map(([name, values]) => ({ series: name, values }))
  const file = join(dir, 'test.yaml')
  const tests = [{ interval: '1m', input_series: input, ...also }]
  writeFileSync(file, JSON.stringify({ rule_files: [FILE], evaluation_interval: '1m', tests }))
  const { status, stdout, stderr } = spawnSync('promtool', ['test', 'rules', file], { encoding: 'utf8' })
  return { code: status, text: `${stdout}${stderr}` }
}

function assertFiring(series: Readonly<Record<string, string>>, expected: readonly string[]): void {
  const exp_samples = expected.map((labels) => ({ labels, value: 1 }))
  const { code, text } = promtool(series, {
    promql_expr_test: [{ expr: FIRING, eval_time: `${MINUTES}m`, exp_samples }],
  })
  assert.equal(code, 0, text.replaceAll(/\{__name__/g, '\n{__name__'))
}

function world(of: (one: AlertCase) => Readonly<Record<string, string>>): Record<string, string> {
  return Object.assign({ ...UP }, ...Object.values(ALERT_CASES).map(of))
}

test('they fire: all of them, and no other; what they say has the values, and no error of a template', () => {
  const expected = [...Object.entries(ALERT_CASES).map(([name, { as }]) => [name, as] as const), ...ALSO_FIRE]
  const exp_samples = expected.map(([name, labels]) => ({ labels: sample(name, labels), value: 1 }))
  const eval_time = `${MINUTES}m`
  // Wrong expectations, so that it shows what it has.
  const wrong = Object.keys(ALERT_CASES).map((alertname) => ({ eval_time, alertname, exp_alerts: [] }))
  const { text } = promtool(
    world(({ fires }) => fires),
    { promql_expr_test: [{ expr: FIRING, eval_time, exp_samples }], alert_rule_test: wrong },
  )
  assert.ok(!text.includes(`expr: ${JSON.stringify(FIRING)}`), text.replaceAll('{__name__', '\n{__name__'))
  const said = [...text.matchAll(/Annotations:\{([\s\S]*?runbook_url="[^"]*"[\s\S]*?)\}/g)].map(([, all = '']) => all)
  assert.ok(said.length >= Object.keys(ALERT_CASES).length, text.slice(0, 2000))
  for (const one of said) assert.doesNotMatch(one, /<error|<no value>|NaN|\{\{/, one)
  assert.ok(said.some((one) => /97\.5% of the requests in flight that schema full of cluster f allows/.test(one)))
  assert.ok(said.some((one) => /Certificate serving of the gateway expires in less than 7 days/.test(one)))
})

test('close to it, none fires', () => {
  assertFiring(
    world(({ silent }) => silent),
    [],
  )
})

test('nothing at all is an alert, too', () => {
  assertFiring({ up: `0x${MINUTES}` }, [sample('PortcullisAbsent', {})])
})
