// Totals of a replay: for each pair of logged and predicted outcome, how many requests, of which users and kinds, with a few examples.
// Memory is bounded by the number of groups and names, whatever the log contains.

import { type LimitTotal, LimitTotals } from './limit-totals.ts'
import type { LogEntry } from './log-entry.ts'
import {
  dependsOnLimit,
  isChange,
  isShadowChange,
  outcomeText,
  type ReplayComparison,
  withoutShadowOfLimits,
} from './outcome.ts'

interface Example {
  readonly auditID: string
  readonly time: string
  readonly user: string
  readonly method: string
  readonly target: string
  /** The predicted refusal's message, or shadow mode's; or ''. */
  readonly message: string
}

export interface ChangeGroup {
  readonly cluster: string
  /** `forward`, or `refuse REASON (RULE)`; for shadow mode its report: `filter/rule`, or `nothing`. */
  readonly was: string
  readonly wouldBe: string
  readonly requests: number
  readonly users: readonly Counted[]
  readonly resources: readonly Counted[]
  readonly examples: readonly Example[]
}

export interface ReplaySummary {
  readonly requests: number
  readonly from: string
  readonly to: string
  /** Requests that would get another response. */
  readonly changed: number
  readonly changes: readonly ChangeGroup[]
  /** Requests on which shadow mode would report something else. */
  readonly shadowChanged: number
  readonly shadowChanges: readonly ChangeGroup[]
  /** Compared with the log, refusals by limits are known as totals only, and are not changes. */
  readonly limits: readonly LimitTotal[]
  /** Refused before the user was known: assumed to be refused again. */
  readonly notEvaluated: number
  /** Another check is involved (PodProtectors, the body), and assumed to decide as in the log. */
  readonly assumed: number
  /** Read too late to be sorted: their use of limits was not simulated. */
  readonly late: number
}

/** Maximum number of separate groups; names come from rules, which are few, and from logs, which may contain anything. */
const MAX_GROUPS = 500
const MAX_EXAMPLES = 3
const TOP = 5
/** Maximum length of texts chosen by clients. */
const MAX_TEXT = 256

interface Group {
  readonly cluster: string
  readonly was: string
  readonly wouldBe: string
  requests: number
  readonly users: Counts
  readonly resources: Counts
  readonly examples: Example[]
}

export class ReplaySummarizer {
  readonly #changes = new Map<string, Group>()
  readonly #shadowChanges = new Map<string, Group>()
  readonly #limits = new LimitTotals()
  readonly #totalsOnly: boolean
  #requests = 0
  #notEvaluated = 0
  #assumed = 0
  #late = 0
  #fromMs = Number.POSITIVE_INFINITY
  #toMs = Number.NEGATIVE_INFINITY

  /** @param totalsOnly refusals by limits are compared with the log, which does not say how full they were, not with a second simulation */
  constructor(totalsOnly: boolean) {
    this.#totalsOnly = totalsOnly
  }

  /** @param comparison undefined = nothing can be predicted for the request */
  add(entry: LogEntry, late: boolean, comparison: ReplayComparison | undefined, message: string): void {
    this.#requests++
    this.#fromMs = Math.min(this.#fromMs, entry.startMs)
    this.#toMs = Math.max(this.#toMs, entry.startMs)
    if (late) this.#late++
    if (comparison === undefined) {
      this.#notEvaluated++
      return
    }
    if (comparison.assumed) this.#assumed++
    if (this.#totalsOnly) {
      this.#limits.add(entry.cluster, comparison)
      this.#compare(entry, withoutShadowOfLimits(comparison), message)
    } else this.#compare(entry, comparison, message)
  }

  #compare(entry: LogEntry, comparison: ReplayComparison, message: string): void {
    const { was, wouldBe } = comparison
    if (this.#totalsOnly && dependsOnLimit(comparison)) return
    if (isChange(comparison)) count(this.#changes, entry, outcomeText(was), outcomeText(wouldBe), message)
    else if (isShadowChange(comparison)) {
      count(this.#shadowChanges, entry, shadowText(was.shadow), shadowText(wouldBe.shadow), message)
    }
  }

  summary(): ReplaySummary {
    const [changes, shadowChanges] = [groupsOf(this.#changes), groupsOf(this.#shadowChanges)]
    return {
      requests: this.#requests,
      from: timeText(this.#fromMs),
      to: timeText(this.#toMs),
      changed: sumOf(changes),
      changes,
      shadowChanged: sumOf(shadowChanges),
      shadowChanges,
      limits: this.#limits.totals(),
      notEvaluated: this.#notEvaluated,
      assumed: this.#assumed,
      late: this.#late,
    }
  }
}

function count(groups: Map<string, Group>, entry: LogEntry, was: string, wouldBe: string, message: string): void {
  const group = groupFor(groups, entry.cluster.slice(0, MAX_TEXT), was.slice(0, MAX_TEXT), wouldBe.slice(0, MAX_TEXT))
  group.requests++
  group.users.add(entry.user.slice(0, MAX_TEXT))
  group.resources.add(`${entry.verb} ${entry.resource === '' ? '(path)' : entry.resource}`.slice(0, MAX_TEXT))
  if (group.examples.length >= MAX_EXAMPLES) return
  group.examples.push({
    auditID: entry.auditID.slice(0, MAX_TEXT),
    time: timeText(entry.startMs),
    user: entry.user.slice(0, MAX_TEXT),
    method: entry.input.method.slice(0, MAX_TEXT),
    target: entry.input.target.slice(0, MAX_TEXT),
    message: message.slice(0, 2 * MAX_TEXT),
  })
}

function groupFor(groups: Map<string, Group>, cluster: string, was: string, wouldBe: string): Group {
  const key = JSON.stringify([cluster, was, wouldBe])
  const known = groups.get(key)
  if (known !== undefined) return known
  if (groups.size >= MAX_GROUPS) {
    const rest = groups.get('')
    if (rest !== undefined) return rest
  }
  const full = groups.size >= MAX_GROUPS
  const group: Group = {
    cluster: full ? '(others)' : cluster,
    was: full ? '(others)' : was,
    wouldBe: full ? '(others)' : wouldBe,
    requests: 0,
    users: new Counts(),
    resources: new Counts(),
    examples: [],
  }
  groups.set(full ? '' : key, group)
  return group
}

function groupsOf(groups: ReadonlyMap<string, Group>): ChangeGroup[] {
  return [...groups.values()]
    .sort((a, b) => b.requests - a.requests)
    .map(({ users, resources, ...group }) => ({ ...group, users: users.top(TOP), resources: resources.top(TOP) }))
}

function sumOf(groups: readonly ChangeGroup[]): number {
  return groups.reduce((sum, { requests }) => sum + requests, 0)
}

function shadowText(shadow: readonly string[]): string {
  return shadow.length === 0 ? 'nothing' : shadow.join(', ')
}

function timeText(ms: number): string {
  return Number.isFinite(ms) ? new Date(ms).toISOString() : ''
}

// Counts names chosen by clients: at most as many as the limit, the rest together.
interface Counted {
  readonly name: string
  readonly requests: number
}

/** Maximum number of names counted separately. */
const MAX_NAMES = 10_000
const OTHERS = '(others)'

class Counts {
  readonly #counts = new Map<string, number>()
  readonly #maxNames: number

  constructor(maxNames: number = MAX_NAMES) {
    this.#maxNames = maxNames
  }

  add(name: string): void {
    const known = this.#counts.get(name)
    const as = known === undefined && this.#counts.size >= this.#maxNames ? OTHERS : name
    this.#counts.set(as, (this.#counts.get(as) ?? 0) + 1)
  }

  /** Most frequent first. */
  top(n: number): Counted[] {
    const all = [...this.#counts].map(([name, requests]) => ({ name, requests }))
    return all.sort((a, b) => b.requests - a.requests || (a.name < b.name ? -1 : 1)).slice(0, n)
  }

  get names(): number {
    return this.#counts.size
  }
}
