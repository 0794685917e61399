// What a thread is working on, so that a turn of its event loop that takes too long has a name. Each mark is two stores and, where the
// time was read anyway, a comparison. One state for each thread, as there is one event loop.

import { MONOTONIC_OFFSET_MS } from '../world/clock.ts'

/** What a thread can be doing; a closed set, because it is a label of metrics. */
export const STEPS = [
  /** TLS and the first bytes of a new connection. */
  'handshake',
  /** Frames and header blocks of a client. */
  'http2',
  /** The parser of a client's HTTP/1.1. */
  'http1',
  /** From the head of a request until it is decided: lookup to admit, of src/gateway/request/serve.ts. */
  'decide',
  /** Sending it to an endpoint. */
  'forward',
  /** Frames of an endpoint. */
  'upstream',
  /** Its answer on the way to the client. */
  'answer',
  /** Metrics, logs and audit of a request. */
  'observe',
  /** Output to sockets. */
  'write',
  /** The embedded API server. */
  'api-server',
  /** The webhooks. */
  'webhook',
  /** The admin and the health listener. */
  'admin',
  /** A configuration being compiled and put in force. */
  'snapshot',
  /** What a thread tells the main thread about itself, and what that makes of it. */
  'report',
  /** Garbage collection. */
  'gc',
  /** The thread did not run: no processor was free, or it waited for a disk. */
  'off-cpu',
  /** None of these. */
  'unknown',
] as const

export type Step = (typeof STEPS)[number]
/** Those that something is marked as. */
export type MarkedStep = Exclude<Step, 'gc' | 'off-cpu' | 'unknown'>

/** The request that is worked on. */
interface Worked {
  readonly auditId: string
}

/** A step that took too long. Times as `performance.now()`. */
export interface LongStep {
  readonly step: MarkedStep
  readonly fromMs: number
  readonly toMs: number
  /** '' = no request, or none that has one. */
  readonly auditId: string
}

/** The marked ones, as numbers: marking is done for every chunk that is read. */
export const AT: { readonly [S in MarkedStep]: number } = {
  handshake: 0,
  http2: 1,
  http1: 2,
  decide: 3,
  forward: 4,
  upstream: 5,
  answer: 6,
  observe: 7,
  write: 8,
  'api-server': 9,
  webhook: 10,
  admin: 11,
  snapshot: 12,
  report: 13,
}
const MARKED: readonly MarkedStep[] = STEPS.filter((name): name is MarkedStep => name in AT)
const NOTHING = -1

/** A turn has few of them. */
const MOST_KEPT = 16

let step = NOTHING
/** When it began; in an array, because a variable would be a new heap number with each mark. */
const since = new Float64Array(1)
let request: Worked | undefined
let thresholdMs = Number.POSITIVE_INFINITY
let long: LongStep[] = []
/** Milliseconds of each step since the watch has looked. */
const spent = new Float64Array(MARKED.length)

/** The event loop has called something. @param nowMs as `performance.now()` */
export function beginStep(next: number, nowMs: number): void {
  step = next
  since[0] = nowMs
  request = undefined
}

/** What was going on goes on as another step. */
export function nextStep(next: number, nowMs: number): void {
  if (step !== NOTHING) close(nowMs)
  step = next
  since[0] = nowMs
}

/** The same with a time of the clock of all threads. @param monotonicMs as `systemClock.monotonic()` */
export function nextStepAt(next: number, monotonicMs: number): void {
  nextStep(next, monotonicMs - MONOTONIC_OFFSET_MS)
}

/** Back to the event loop. */
export function endStep(nowMs: number): void {
  if (step !== NOTHING) close(nowMs)
  step = NOTHING
  request = undefined
}

/** Names the request that the steps from here on are done for. */
export function workOn(worked: Worked): void {
  request = worked
}

/** Runs what is rare as a step of its own, within another one or not. @param worked default: what was worked on before */
export function inStep<T>(name: MarkedStep, run: () => T, worked: Worked | undefined = request): T {
  const outer = step
  const outerRequest = request
  const startMs = performance.now()
  if (outer === NOTHING) beginStep(AT[name], startMs)
  else nextStep(AT[name], startMs)
  request = worked
  try {
    return run()
  } finally {
    const endMs = performance.now()
    if (outer === NOTHING) endStep(endMs)
    else nextStep(outer, endMs)
    request = outerRequest
  }
}

function sinceMs(): number {
  return since[0] ?? 0
}

function close(nowMs: number): void {
  const ms = nowMs - sinceMs()
  spent[step] = (spent[step] ?? 0) + ms
  if (ms >= thresholdMs && long.length < MOST_KEPT) long.push(marked(nowMs))
}

function marked(nowMs: number): LongStep {
  return { step: MARKED[step] ?? 'observe', fromMs: sinceMs(), toMs: nowMs, auditId: request?.auditId ?? '' }
}

// === for the watch ===

export function setThreshold(ms: number): void {
  thresholdMs = ms
}

/** Steps that took too long since the last call. */
export function takeLong(): readonly LongStep[] {
  if (long.length === 0) return NONE
  const taken = long
  long = []
  return taken
}

/** What most of at least `leastMs` was spent on since the last call, in however many pieces; undefined = on nothing that is marked. */
export function takeMost(leastMs: number): MarkedStep | undefined {
  let most = 0
  for (let i = 1; i < spent.length; i++) if ((spent[i] ?? 0) > (spent[most] ?? 0)) most = i
  const found = (spent[most] ?? 0) >= leastMs ? MARKED[most] : undefined
  spent.fill(0)
  return found
}

/** A step that began after `sinceWhenMs` and whose end nobody marked, such as what goes on after a promise. */
export function takeOpen(sinceWhenMs: number, nowMs: number): LongStep | undefined {
  if (step === NOTHING || sinceMs() < sinceWhenMs) return undefined
  const open = marked(nowMs)
  step = NOTHING
  request = undefined
  return open
}

const NONE: readonly LongStep[] = []
