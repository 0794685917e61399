// What the table of clusters makes when it is needed, and what it gives to other threads.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { compileCluster } from '../core/cluster/compile-cluster.ts'
import { MAX_CALLS_IN_FLIGHT, Turn } from '../core/limits/call-turns.ts'
import { ClusterTable, OwnCallLimits } from './clusters.ts'

const names = Array.from({ length: 150 }, (_, at) => `c${at}.example.com`)

class CountedTurn extends Turn {
  readonly granted: () => void

  constructor(source: string, granted: () => void) {
    super(source, 1, 10_000)
    this.granted = granted
  }

  refused(): void {}
}

function tableOf(all: readonly string[]): ClusterTable {
  const table = new ClusterTable()
  const spec = {
    servers: [{ endpoint: 'https://192.0.2.1:6443' }],
    dispatchPolicies: [{ rules: [{ verbs: ['*'], apiGroups: ['*'], resources: ['*'] }] }],
  }
  const compiled = all.map((name) =>
    compileCluster({ object: { apiVersion: '', kind: '', metadata: { name }, spec }, revision: '1' }),
  )
  table.change(compiled, [], 0)
  return table
}

test('handles come in parts, each once, without clusters that are gone', () => {
  const parts = [...tableOf(names).handles([...names, 'gone.example.com'])]
  assert.deepEqual(
    parts.flat().map(({ compiled }) => compiled.name),
    names,
  )
  assert.deepEqual(
    parts.map(({ length }) => length),
    [64, 64, 22],
  )
})

test('in a copy of a part, clusters still share what they share here', () => {
  const [copies = []] = structuredClone([...tableOf(names).handles(names)])
  const lists = copies.map(({ compiled }) => compiled.policies[0]?.rules[0]?.users)
  assert.equal(lists.length, 64)
  assert.equal(new Set(lists).size, 1)
})

test('turns are made once for each kind of call, and bounded unless requests are', () => {
  const turns = new OwnCallLimits()
  assert.equal(turns.of('token-review'), turns.of('token-review'))
  assert.notEqual(turns.of('token-review'), turns.of('access-review'))
  assert.equal(turns.deletions, turns.deletions)
  const granted = (kind: Parameters<OwnCallLimits['of']>[0]): number => {
    const asked = turns.of(kind)
    let count = 0
    for (let at = 0; at < MAX_CALLS_IN_FLIGHT + 10; at++)
      asked.ask(new CountedTurn(`source ${at}`, () => count++), { qps: 0, burst: 0 }, 0)
    return count
  }
  assert.ok(granted('page-read') <= MAX_CALLS_IN_FLIGHT)
  assert.equal(granted('pod-read'), MAX_CALLS_IN_FLIGHT + 10)
})
