// Limits that let everything pass that was seen, and some more: for each class one of its own for each user, from the user who asked for
// most. A user who asks for far more than all others of his class gets a limit of his own, so that the others' stays low.

import type { DispatchRule } from '../../api/upstream-cluster/upstream-cluster.ts'
import type { ClassDemand, ClusterDemand, UserDemand } from './measure.ts'
import { PRIORITY_CLASSES, type PriorityClass } from './priority-classes.ts'

export interface SuggestedLimit {
  readonly name: string
  readonly kind: 'exempt' | 'tokenBucket' | 'maxRequestsInflight'
  readonly qps: number
  readonly burst: number
  readonly max: number
  /** 0 = no cap. */
  readonly maxWatches: number
  readonly perUser: boolean
  /** Where the numbers come from; one line each. */
  readonly why: readonly string[]
}

export interface SuggestedPolicy {
  readonly rule: DispatchRule
  readonly limit: string
  /** What it is for; one line. */
  readonly about: string
}

export interface SuggestedLimits {
  readonly cluster: string
  readonly limits: readonly SuggestedLimit[]
  readonly policies: readonly SuggestedPolicy[]
}

export interface SuggestOptions {
  /** What a limit lets pass for one request that was seen; at least 1. */
  readonly headroom: number
  /** A log that covers less says too little: milliseconds, and requests. */
  readonly minDurationMs: number
  readonly minRequests: number
}

/** How much more than the next one a user asks for who gets a limit of his own. */
const STANDS_OUT = 4
/** Users of one class who get one. */
const MAX_OWN_LIMITS = 5
/** Below this a limit is of no use: a single client-go client sends as many in a burst (rest.DefaultQPS, DefaultBurst). */
const LEAST_QPS = 10
const LEAST_IN_FLIGHT = 4
const LEAST_WATCHES = 20
const EXEMPT = 'suggested-exempt'

/** Why nothing can be suggested; '' = it can. */
export function tooLittle({ requests, fromMs, toMs }: ClusterDemand, options: SuggestOptions): string {
  if (requests < options.minRequests)
    return `only ${requests} requests were seen, and ${options.minRequests} are needed`
  const hours = (ms: number): string => `${Math.round(ms / 36_000) / 100} h`
  if (toMs - fromMs >= options.minDurationMs) return ''
  return `the log covers only ${hours(toMs - fromMs)}, and ${hours(options.minDurationMs)} are needed`
}

export function suggestLimits(demand: ClusterDemand, options: SuggestOptions): SuggestedLimits {
  const limits: SuggestedLimit[] = []
  const policies: SuggestedPolicy[] = []
  for (const [at, of] of PRIORITY_CLASSES.entries()) {
    const seen = demand.classes.get(at)
    if (of.limit === 'exempt') {
      if (!limits.some(({ name }) => name === EXEMPT)) limits.push(exempt())
      policies.push({ rule: of.rule, limit: EXEMPT, about: aboutText(of, seen) })
      continue
    }
    const name = `suggested-${of.name}`
    const { own, rest } = seen === undefined ? { own: [], rest: [] } : standingOut(of, [...seen.users.values()])
    for (const [i, user] of own.entries()) {
      const ownName = `${name}-user-${i + 1}`
      limits.push(limitOf(of, ownName, [user], demand, options, false))
      const about = `${user.name}, who asks for far more than others of ${of.name}: ${user.requests} requests`
      policies.push({ rule: ruleOfUser(of.rule, user.name), limit: ownName, about })
    }
    limits.push(limitOf(of, name, rest, demand, options, true))
    policies.push({ rule: of.rule, limit: name, about: aboutText(of, seen) })
  }
  return { cluster: demand.name, limits, policies }
}

function exempt(): SuggestedLimit {
  const why = ['No limit is right for these: see the policies that name it.']
  return { name: EXEMPT, kind: 'exempt', qps: 0, burst: 0, max: 0, maxWatches: 0, perUser: false, why }
}

/** The user in the place of the class's subjects: of both only he is meant. */
function ruleOfUser({ userGroups: _groups, ...rule }: DispatchRule, name: string): DispatchRule {
  return { ...rule, users: [name] }
}

function demandOf({ limit }: PriorityClass, user: UserDemand): number {
  return limit === 'lists' ? user.inFlight.value : user.perSecond.value
}

/** Who asks for several times as much as whoever comes next; not where there are too few to say what is usual. */
function standingOut(of: PriorityClass, users: UserDemand[]): { own: UserDemand[]; rest: UserDemand[] } {
  const sorted = users.sort((a, b) => demandOf(of, b) - demandOf(of, a))
  const least = of.limit === 'lists' ? LEAST_IN_FLIGHT : LEAST_QPS
  for (let n = Math.min(MAX_OWN_LIMITS, sorted.length - 3); n > 0; n--) {
    const [last, next] = [sorted[n - 1], sorted[n]]
    if (last === undefined || next === undefined || !isPlainName(last.name)) continue
    if (demandOf(of, last) < STANDS_OUT * Math.max(least, demandOf(of, next))) continue
    const own = sorted.slice(0, n)
    if (own.every(({ name }) => isPlainName(name))) return { own, rest: sorted.slice(n) }
  }
  return { own: [], rest: sorted }
}

/** A name that means itself in a rule. */
function isPlainName(name: string): boolean {
  return /^[a-zA-Z0-9][a-zA-Z0-9:@._/-]{0,252}$/.test(name)
}

function limitOf(
  of: PriorityClass,
  name: string,
  users: readonly UserDemand[],
  { late }: ClusterDemand,
  { headroom }: SuggestOptions,
  perUser: boolean,
): SuggestedLimit {
  const most = highest(users, (user) => demandOf(of, user))
  const value = most === undefined ? 0 : demandOf(of, most)
  const whose = perUser ? 'of one user' : 'of this user'
  const base = { name, qps: 0, burst: 0, max: 0, maxWatches: 0, perUser }
  const more = `headroom ${headroom}`
  if (of.limit === 'lists') {
    const max = Math.max(LEAST_IN_FLIGHT, Math.ceil(value * headroom))
    const seen =
      most === undefined ? 'None was seen' : `The most lists ${whose} at once: ${peakText(most, most.inFlight)}`
    const why = [`${seen}; ${more}, at least ${LEAST_IN_FLIGHT}: max ${max}.`]
    return { ...base, kind: 'maxRequestsInflight', max, why }
  }
  const qps = Math.max(LEAST_QPS, Math.ceil(value * headroom))
  const burst = 2 * qps
  const seen = most === undefined ? 'None was seen' : `The most ${whose} in a second: ${peakText(most, most.perSecond)}`
  const why = [
    `${seen}; ${more}, at least ${LEAST_QPS}: qps ${qps}.`,
    // Two seconds of the clock that follow each other may have their requests at the end of one and the beginning of the other.
    `Two seconds' worth can come at once, at the end of one second and the beginning of the next: burst ${burst}.`,
  ]
  if (late > 0) return { ...base, kind: 'tokenBucket', qps, burst, why: [...why, NO_WATCHES] }
  const watcher = highest(users, ({ watches }) => watches.value)
  const watches = watcher?.watches.value ?? 0
  if (watches === 0) return { ...base, kind: 'tokenBucket', qps, burst, why }
  const maxWatches = Math.max(LEAST_WATCHES, Math.ceil(watches * headroom))
  const open = `The most watches ${whose} open at once: ${watcher === undefined ? '' : peakText(watcher, watcher.watches)}`
  why.push(`${open}; ${more}, at least ${LEAST_WATCHES}: maxWatches ${maxWatches}.`)
  return { ...base, kind: 'tokenBucket', qps, burst, maxWatches, why }
}

const NO_WATCHES =
  'No maxWatches: the log was read once, and says too late when watches began (give it as a file instead of by -).'

function highest(users: readonly UserDemand[], value: (user: UserDemand) => number): UserDemand | undefined {
  let best: UserDemand | undefined
  for (const user of users) if (best === undefined || value(user) > value(best)) best = user
  return best
}

function peakText({ name }: UserDemand, peak: UserDemand['perSecond']): string {
  const days =
    peak.days < 2 ? '' : `; of the peaks of ${peak.days} days p50 ${peak.percentile(0.5)}, p95 ${peak.percentile(0.95)}`
  return `${peak.value} (${name}, ${new Date(peak.atMs).toISOString()}${days})`
}

function aboutText({ name, about }: PriorityClass, seen: ClassDemand | undefined): string {
  if (seen === undefined) return `${name}: ${about}; none was seen`
  const limited = seen.limited === 0 ? '' : `, ${seen.limited} of them refused by a limit`
  const [most] = seen.resources.top(1)
  const mostly = most === undefined ? '' : `, most often ${most.name}`
  const together = `together at most ${seen.perSecond.value} a second, ${seen.inFlight.value} at once`
  return `${name}: ${about}; ${seen.requests} requests${limited} of ${seen.users.size} users${mostly}; ${together}`
}
