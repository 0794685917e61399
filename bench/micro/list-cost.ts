// What the LIST guard and `cost: true` cost a list: reading what it asks for, finding what is known of it, the verdict, and learning from
// its answer. CPU time; `node bench/micro/list-cost.ts`

import { listRequestOf } from '../../src/gateway/core/list-cost/list-request.ts'
import { ListSizes, seenOf } from '../../src/gateway/core/list-cost/list-sizes.ts'
import { checkList } from '../../src/gateway/core/policy/list-guard.ts'
import { parseRequestInfo } from '../../src/gateway/core/request/request-info.ts'

const ROUNDS = 30
const CALLS = 200_000
const GUARD = { shadow: false, maxBytesUnlimited: 50_000_000, exempt: [] }
const ANSWER = { bytes: () => 20_000_000, see: (): void => undefined, remainingItems: (): number => 0 }

const sizes = new ListSizes()
for (const resource of ['pods', 'configmaps', 'secrets', 'events', 'leases']) {
  const key = { apiGroup: '', resource, namespace: '', shape: '' }
  sizes.learn(key, key, { bytes: 20_000_000, partial: false, items: 0, itemBytes: 0, nowMs: 0 })
}

function measure(name: string, target: string): void {
  const info = parseRequestInfo('GET', target)
  if ('failure' in info) throw new Error(info.failure)
  let best = Number.POSITIVE_INFINITY
  let kept = 0
  for (let round = 0; round < ROUNDS; round++) {
    const before = process.cpuUsage()
    for (let i = 0; i < CALLS; i++) {
      const list = listRequestOf(info, target, sizes)
      if (list === undefined) continue
      if (checkList(GUARD, list) === 'large') kept++
      kept += list.seats
      sizes.learn(info, list, seenOf(list, ANSWER, true, i))
    }
    const { user, system } = process.cpuUsage(before)
    best = Math.min(best, ((user + system) * 1000) / CALLS)
  }
  console.log(`${name.padEnd(40)} ${best.toFixed(0).padStart(5)} ns${kept < 0 ? '!' : ''}`)
}

measure('a read of one object', '/api/v1/namespaces/default/configmaps/small')
measure('a list', '/api/v1/pods')
measure('a page', '/api/v1/pods?limit=500&continue=eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MX0')
measure('a list with selectors', '/api/v1/pods?fieldSelector=spec.nodeName%3Da&labelSelector=app%3Da')
measure('a WatchList', '/api/v1/pods?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan')
