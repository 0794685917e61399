// ScaleDownPolicies on the request path: before a scale-down is forwarded, its chosen pods get a deletion cost; if upstream
// refuses the write, the cost is removed again. Costs left over otherwise are cleaned up by the leader (scaling/controllers).

import type { ScaleChange } from '../../gateway/core/policy/scale-change.ts'
import { scaleTargetOf } from '../../gateway/core/request/scale-target.ts'
import { mayList } from '../../gateway/request/calls/kube-review.ts'
import { scaleChange } from '../../gateway/request/calls/scale-change.ts'
import type { Decision, RequestFilter } from '../../gateway/request/exchange/decision.ts'
import type { UpstreamOutcome } from '../../gateway/request/exchange/exchange.ts'
import { type JsonObject, nameOf } from '../../kit/api/json/json-object.ts'
import { isRefusal, type Refusal, refuse } from '../../kit/core/refusal/refusal.ts'
import type { ScaleDownOutcome, ScaleDownReport } from '../api/scale-down.ts'
import type { VictimChoice } from '../core/victim-choice/choose-victims.ts'
import { UnavailableError } from '../core/victim-choice/cluster-reads.ts'
import type { Costs, VictimFinding } from '../core/victim-choice/find-victims.ts'
import type { CompiledScaleDownPolicy } from '../core/victim-choice/policy.ts'
import type { ScaleDownPolicies } from '../state/scale-down-policies.ts'
import { chosenVictims } from './chosen-victims.ts'
import { UpstreamObjects } from './upstream-objects.ts'
import { type SetCosts, seenByCaches, setCosts, takeBackCosts } from './victim-costs.ts'

/** Timeout for removing costs, in the background. */
const TAKE_BACK_MS = 10_000
/** Pods named per warning. */
const MAX_NAMED = 5

interface ScaleDownPolicyFilterDeps {
  readonly policies: ScaleDownPolicies
  /** Takes the outcome of a scale-down. */
  report(report: ScaleDownReport): void
}

/** A scale-down with a policy. */
interface ScaleDown {
  readonly deps: ScaleDownPolicyFilterDeps
  readonly decision: Decision
  readonly change: ScaleChange
  readonly policy: CompiledScaleDownPolicy
  readonly workloadName: string
  readonly from: number
  readonly to: number
}

/** The filter of one thread. */
export function createScaleDownPolicyFilter(deps: ScaleDownPolicyFilterDeps): RequestFilter {
  const { policies } = deps
  return {
    // Each policy has its own shadow mode.
    shadow: () => false,
    check(decision) {
      const { info, cluster, scaleChange: asked } = decision
      // An earlier filter has already looked it up: use its result.
      if (asked !== undefined) return steer(deps, decision)
      const covered = policies.covers(cluster.name, info.namespace)
      return covered && scaleTargetOf(info)?.builtIn === true ? steer(deps, decision) : undefined
    },
  }
}

async function steer(deps: ScaleDownPolicyFilterDeps, decision: Decision): Promise<Refusal | undefined> {
  const change = await scaleChange(decision)
  if (change === undefined || isRefusal(change)) return change
  const { from = 0, to = 0 } = change
  const finding = await chosenVictims(deps.policies, decision, change)
  if (finding === undefined || decision.exchange.gone) return undefined
  const { policy, workloadName } = finding
  const scaleDown: ScaleDown = { deps, decision, change, policy, workloadName, from, to }
  const outcome = await act(scaleDown, finding)
  if (typeof outcome !== 'string' && isRefusal(outcome)) return outcome
  await change.nameLeaving?.(outcome)
  return undefined
}

/** @returns the costs that the controller will see, for the warning that names the pods to be removed */
async function act(scaleDown: ScaleDown, finding: VictimFinding): Promise<Costs | Refusal> {
  switch (finding.kind) {
    case 'done':
      return 'unchanged'
    case 'unsteerable':
      return unsteerable(scaleDown, finding.why)
    case 'unavailable':
      return unavailable(scaleDown, finding.why) ?? afterwards(scaleDown)
    case 'chosen':
      if (finding.policy.shadow) return await shadowed(scaleDown, finding.choice)
      try {
        return await setVictims(scaleDown, finding.choice, finding.leftMs)
      } catch (error) {
        if (error instanceof UnavailableError) return unavailable(scaleDown, error.message) ?? 'open'
        throw error
      }
  }
}

/** No victims were chosen: the Deployment controller writes the number again, perhaps through a gateway that can choose then. */
function afterwards({ change, policy }: ScaleDown): Costs {
  return change.target.resource === 'deployments' && !policy.shadow ? 'open' : 'unchanged'
}

/** @throws {UnavailableError} if not all victims got their cost; it is removed again from those that did */
async function setVictims(scaleDown: ScaleDown, choice: VictimChoice, leftMs: number): Promise<Costs> {
  const { decision, policy, workloadName, from, to } = scaleDown
  const { exchange } = decision
  const { gw } = exchange
  const upstream = new UpstreamObjects(decision, gw.clock.monotonic() + leftMs)
  const { namespace } = policy
  const id = gw.uuid()
  const { victims, stale } = choice
  const at = new Date(gw.clock.now()).toISOString()
  try {
    await takeBackCosts(upstream, namespace, stale, '')
    const set = await setCosts(upstream, namespace, victims, { id, workload: workloadName, to, at })
    const conflicts = [...choice.conflicts, ...set.conflicts]
    if (conflicts.length > 0) {
      warn(scaleDown, `deletion costs that other clients set are left unchanged: ${await named(scaleDown, conflicts)}`)
    }
    const outcome = set.set.length === 0 ? 'Nothing' : 'Steered'
    report(scaleDown, outcome, '', set.set, conflicts)
    if (set.set.length === 0) return effective(choice, set)
    exchange.onOutcome = (became) => void revert(scaleDown, victims, id, became)
    await seenByCaches(upstream, namespace, set)
    await sleep(policy.settleMs)
    gw.log.debug('victims of a scale-down have a cost', { workload: workloadName, from, to, victims: set.set })
    return effective(choice, set)
  } catch (error) {
    // The deadline may be the reason.
    if (exchange.onOutcome === undefined) void takeBack(scaleDown, victims, id)
    // Costs are set; whether caches have seen them is unknown.
    else if (error instanceof UnavailableError) return 'open'
    throw error
  }
}

/** Conflicts make it uncertain: the costs that other clients have set meanwhile are unknown here. */
function effective({ victims, stale }: VictimChoice, { set, conflicts }: SetCosts): Costs {
  if (conflicts.length > 0) return 'open'
  const names = new Set(set)
  const { there = [], gone = [] } = Object.groupBy(victims, (one) => (names.has(nameOf(one)) ? 'there' : 'gone'))
  return { victims: there, stale, gone }
}

function sleep(delayMs: number): Promise<void> {
  return new Promise((resolve) => void setTimeout(resolve, delayMs))
}

/** The scale-down was refused: remove the costs. If it may have happened, leave that to the leader. */
async function revert(
  scaleDown: ScaleDown,
  victims: readonly JsonObject[],
  id: string,
  became: UpstreamOutcome,
): Promise<void> {
  const refused = became === 'unsent' || (typeof became === 'number' && became >= 400 && became < 500)
  if (!refused || victims.length === 0) return
  if (await takeBack(scaleDown, victims, id)) report(scaleDown, 'Reverted', 'the scale-down was refused', [], [])
}

/** Never rejects; false = some may be left, for the leader. Says nothing about the scale-down, which may go on without costs. */
async function takeBack(scaleDown: ScaleDown, victims: readonly JsonObject[], id: string): Promise<boolean> {
  const { decision, policy } = scaleDown
  const { gw } = decision.exchange
  const upstream = new UpstreamObjects(decision, gw.clock.monotonic() + TAKE_BACK_MS)
  try {
    await takeBackCosts(upstream, policy.namespace, victims, id)
    return true
  } catch (error) {
    gw.log.warn('deletion costs are not removed yet', { workload: scaleDown.workloadName, error })
    return false
  }
}

function unsteerable(scaleDown: ScaleDown, why: string): Costs {
  report(scaleDown, 'Unsteerable', why, [], [])
  warn(scaleDown, `its victims are not chosen: ${why}`)
  return 'unchanged'
}

async function shadowed(scaleDown: ScaleDown, { victims, conflicts }: VictimChoice): Promise<Costs> {
  const names = victims.map(nameOf)
  report(scaleDown, 'Shadow', '', names, conflicts)
  warn(scaleDown, `in shadow mode it would choose ${names.length === 0 ? 'nothing' : await named(scaleDown, names)}`)
  return 'unchanged'
}

function unavailable(scaleDown: ScaleDown, why: string): Refusal | undefined {
  const { decision, policy, workloadName } = scaleDown
  const { namespace, name, shadow, onUnavailable } = policy
  const message = `its victims cannot be chosen: ${why}`
  report(scaleDown, 'Unavailable', why, [], [])
  decision.exchange.gw.log.warn('victims of a scale-down cannot be chosen', {
    policy: `${namespace}/${name}`,
    workload: workloadName,
    reason: why,
  })
  if (shadow && onUnavailable === 'Reject') {
    const { record } = decision.exchange
    const warning = `scale-down-policy in shadow mode would refuse: ScaleDownPolicy ${namespace}/${name}: ${message}`
    decision.warnings = [...decision.warnings, warning]
    decision.shadow = [...decision.shadow, `scale-down-policy/${namespace}/${name}`]
    record.shadow = decision.shadow
    return undefined
  }
  warn(scaleDown, message)
  if (onUnavailable === 'Forward') return undefined
  const { info } = decision
  const object = { kind: info.resource, name: info.name }
  return refuse('scale-unavailable', `ScaleDownPolicy ${namespace}/${name}: ${message}`, {
    rule: `${namespace}/${name}`,
    object,
  })
}

function warn({ decision, policy: { namespace, name } }: ScaleDown, text: string): void {
  decision.warnings = [...decision.warnings, `ScaleDownPolicy ${namespace}/${name}: ${text}`]
}

/** Pod names for callers who may list pods, otherwise their number. */
async function named({ decision, policy }: ScaleDown, names: readonly string[]): Promise<string> {
  const { exchange, live, caller } = decision
  if (!(await mayList(exchange, live, caller, policy.namespace))) return `${names.length} pods`
  const more = names.length > MAX_NAMED ? ` and ${names.length - MAX_NAMED} more` : ''
  return `${names.slice(0, MAX_NAMED).join(', ')}${more}`
}

function report(
  { deps, decision, policy, workloadName, from, to }: ScaleDown,
  outcome: ScaleDownOutcome,
  message: string,
  victims: ScaleDownReport['victims'],
  conflicts: ScaleDownReport['conflicts'],
): void {
  deps.report({
    namespace: policy.namespace,
    policy: policy.name,
    cluster: decision.cluster.name,
    workload: workloadName,
    from,
    to,
    outcome,
    message,
    victims,
    conflicts,
    atMs: decision.exchange.gw.clock.now(),
  })
}
