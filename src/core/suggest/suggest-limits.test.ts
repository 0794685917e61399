// Suggested limits against the limits themselves: whatever was seen passes them.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { parse } from 'yaml'
import { type LogEntry, parseLogEntry } from '../replay/log-entry.ts'
import { parseRequestInfo } from '../request/request-info.ts'
import { type ClusterDemand, DemandMeter } from './measure.ts'
import { suggestLimits } from './suggest-limits.ts'
import { suggestionYaml } from './suggestion-yaml.ts'

const OPTIONS = { headroom: 1, minDurationMs: 0, minRequests: 0 }

function entry(atMs: number, user: string, target: string, more: object = {}): LogEntry {
  const time = new Date(atMs).toISOString()
  const line = { time, method: 'GET', target, user, cluster: 'prod', latencyMs: 1, ...more }
  const parsed = parseLogEntry(JSON.stringify(line))
  assert.ok(!('error' in parsed))
  return parsed
}

function demandOf(entries: readonly LogEntry[]): ClusterDemand {
  const meter = new DemandMeter()
  for (const one of entries) {
    const info = parseRequestInfo(one.input.method, one.input.target)
    assert.ok(!('failure' in info))
    meter.add({ entry: one, late: false }, info)
  }
  const [demand] = meter.clusters
  assert.ok(demand)
  return demand
}

test('a bucket of the highest second, with two of them as a burst, never refuses what it was made from', () => {
  const arrivals = fc.array(fc.integer({ min: 0, max: 5_000 }), { minLength: 1, maxLength: 300 })
  fc.assert(
    fc.property(arrivals, (times) => {
      const sorted = times.toSorted((a, b) => a - b)
      const { limits } = suggestLimits(demandOf(sorted.map((at) => entry(at, 'alice', '/api/v1/pods/p'))), OPTIONS)
      const limit = limits.find(({ name }) => name === 'suggested-global-default')
      assert.ok(limit)
      let [tokens, last] = [limit.burst, 0]
      for (const at of sorted) {
        tokens = Math.min(limit.burst, tokens + ((at - last) * limit.qps) / 1000) - 1
        last = at
        assert.ok(tokens >= -1e-9)
      }
    }),
  )
})

test('who asks for far more than the others gets a limit of his own, and the others keep a low one', () => {
  const entries: LogEntry[] = []
  for (let i = 0; i < 200; i++) entries.push(entry(1000 + i, 'ci-bot', '/api/v1/pods/p'))
  for (const user of ['a', 'b', 'c']) for (let i = 0; i < 15; i++) entries.push(entry(3000 + i, user, '/api/v1/pods/p'))
  const demand = demandOf(entries)
  const yaml = suggestionYaml(suggestLimits(demand, { ...OPTIONS, headroom: 2 }), demand)
  const { spec } = parse(yaml)
  const schemas: { name: string; tokenBucket?: { qps: number }; perUser?: boolean; shadow?: boolean }[] =
    spec.flowControl.flowControlSchemas
  const byName = new Map(schemas.map((schema) => [schema.name, schema]))
  assert.equal(byName.get('suggested-global-default-user-1')?.tokenBucket?.qps, 400)
  assert.equal(byName.get('suggested-global-default')?.tokenBucket?.qps, 30)
  assert.equal(byName.get('suggested-global-default')?.perUser, true)
  assert.ok(schemas.every(({ name, shadow }) => shadow === true || name === 'suggested-exempt'))
  const named = spec.dispatchPolicies.map((policy: { flowControlSchemaName: string }) => policy.flowControlSchemaName)
  assert.ok(named.indexOf('suggested-global-default-user-1') < named.indexOf('suggested-global-default'))
  assert.deepEqual(new Set(named), new Set(byName.keys()))
})

test('names that clients have chosen stay names', () => {
  const name = 'x\n  - evil: "\u2028: [#'
  const demand = demandOf([entry(1000, name, '/api/v1/pods', { latencyMs: 5 })])
  const yaml = suggestionYaml({ ...suggestLimits(demand, OPTIONS), cluster: name }, { ...demand, name })
  assert.equal(parse(yaml).metadata.name, name)
  assert.deepEqual(Object.keys(parse(yaml)), ['apiVersion', 'kind', 'metadata', 'spec'])
})

test('slots end when requests end, and watches hold theirs until they are answered', () => {
  const list = (at: number): LogEntry => entry(at, 'a', '/api/v1/pods', { latencyMs: 10 })
  const watch = (at: number): LogEntry => entry(at, 'a', '/api/v1/pods?watch=1', { latencyMs: 50_000, ttfbMs: 5 })
  const demand = demandOf([list(0), list(5), list(12), list(100), watch(200), watch(210), watch(220)])
  const peaks = [...demand.classes.values()].map(({ users }) => {
    const user = users.get('a')
    return [user?.inFlight.value, user?.watches.value]
  })
  assert.deepEqual(peaks, [
    [2, 0],
    [1, 3],
  ])
})
