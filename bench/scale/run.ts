// `npm run bench:scale`: how long until the next group is tried, when the first one never delivers. Three scenarios, four generations of the
// autoscaler, with and without the scale-up guard, in simulated time. Ends with 1 when the model has left the documented times, or the guard needs more
// than a minute.

import process from 'node:process'
import { compilePolicy, type ScaleUpGuardPolicy } from '../../src/scale-up-guard/core/guard/compile-guard.ts'
import { Autoscaler, CloudGroup, type Provider, SCAN_MS, type World } from './autoscaler-model.ts'
import { GuardModel } from './guard-model.ts'
import { type AutoscalerRules, RULES_1_27, RULES_1_28, RULES_1_30, RULES_1_36 } from './rules.ts'

const MINUTE_MS = 60_000
const END_MS = 400 * MINUTE_MS
const STEP_MS = 1000
const GOAL_MS = 60_000

type Scenario = 'S1' | 'S2' | 'S3'
const SCENARIOS: Readonly<Record<Scenario, string>> = {
  S1: 'two pods more than there are nodes',
  S2: 'one pod more every ten minutes, for two hours',
  S3: 'the first group is empty with a target of 2, and the autoscaler is restarted',
}

const GENERATIONS: readonly (readonly [string, AutoscalerRules])[] = [
  ['<= 1.27', RULES_1_27],
  ['1.28, 1.29', RULES_1_28],
  ['1.30 to 1.35', RULES_1_30],
  ['>= 1.36', RULES_1_36],
]

/** Seconds until the second group, computed by hand from the autoscaler's source, not measured; `never` within 400 minutes. */
const DOCUMENTED: Readonly<Record<string, readonly number[]>> = {
  'S1 pool': [5490, 930, 930, 910],
  'S1 machines': [920, 920, 920, 910],
  'S2 pool': [12690, 8130, 8130, 8110],
  'S2 machines': [Infinity, Infinity, Infinity, Infinity],
  'S3 pool': [Infinity, Infinity, Infinity, 0],
  'S3 machines': [1830, 1830, 1830, 910],
}

/** @returns seconds until the second group was scaled up; Infinity = it was not */
function secondsUntilNextGroup(
  scenario: Scenario,
  provider: Provider,
  rules: AutoscalerRules,
  policy: ScaleUpGuardPolicy | undefined,
): number {
  const empty = scenario === 'S3'
  // The documented time of a pool in S3 since 1.36 is that of a group with a minimum: it is unhealthy without a node.
  const minSize = empty && provider === 'pool' ? 1 : 0
  const first = new CloudGroup('A', { provider, delivers: false, minSize, nodes: empty ? 0 : 2 })
  // Ordered long before the autoscaler was restarted.
  if (empty) first.raise(2, -30 * MINUTE_MS)
  const groups = [first, new CloudGroup('B', { provider, delivers: true, minSize: 0, nodes: 2 })]
  const guard = policy === undefined ? undefined : new GuardModel(policy)
  const world: World = { groups, pending: scenario === 'S2' ? 1 : 2, guard }
  const autoscaler = new Autoscaler(world, rules)
  for (let nowMs = 0; nowMs <= END_MS; nowMs += STEP_MS) {
    if (scenario === 'S2' && nowMs > 0 && nowMs <= 120 * MINUTE_MS && nowMs % (10 * MINUTE_MS) === 0) world.pending++
    for (const group of groups) guard?.look(group, nowMs)
    if (nowMs % SCAN_MS === 0 && autoscaler.runOnce(nowMs) === 'B') return nowMs / 1000
  }
  return Infinity
}

function text(seconds: number): string {
  if (!Number.isFinite(seconds)) return 'never'
  return seconds < 120 ? `${seconds}s` : `${Math.floor(seconds / 60)}m${String(seconds % 60).padStart(2, '0')}s`
}

const lines: string[] = []
let failed = 0
for (const scenario of ['S1', 'S2', 'S3'] as const) {
  lines.push('', `${scenario}: ${SCENARIOS[scenario]}. Until the second group is scaled up:`, '')
  lines.push('| provider | autoscaler | alone | documented | with the guard |', '|---|---|---|---|---|')
  for (const provider of ['pool', 'machines'] as const) {
    GENERATIONS.forEach(([name, rules], i) => {
      const alone = secondsUntilNextGroup(scenario, provider, rules, undefined)
      const guarded = secondsUntilNextGroup(
        scenario,
        provider,
        rules,
        compilePolicy({ clusterRef: { management: 'prod' } }),
      )
      const documented = DOCUMENTED[`${scenario} ${provider}`]?.[i] ?? Number.NaN
      if (alone !== documented) failed++
      // A pool has no machines that say why: there is only silence, ten minutes of it.
      if (provider === 'machines' && guarded * 1000 > GOAL_MS) failed++
      const cells = [provider, name, text(alone), alone === documented ? 'same' : text(documented), text(guarded)]
      lines.push(`| ${cells.join(' | ')} |`)
    })
  }
}
process.stdout.write(`${lines.join('\n').trim()}\n\n${failed === 0 ? 'PASS' : `FAIL: ${failed} rows`}\n`)
process.exitCode = failed === 0 ? 0 : 1
