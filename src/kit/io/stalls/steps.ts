// Marks what a thread is working on, so that an overlong turn of its event loop has a name. Each mark is two stores and, where the time was read
// anyway, a comparison. One state per thread, like the event loop.

import { MONOTONIC_OFFSET_MS } from '../world/clock.ts'

/** What a thread can be doing; a closed set, because it is a metrics label. */
export const STEPS = [
  /** TLS and the first bytes of a new connection. */
  'handshake',
  /** Frames and header blocks of a client. */
  'http2',
  /** The parser of a client's HTTP/1.1. */
  'http1',
  /** From a request's head to the decision: lookup to admit, in src/gateway/request/serve.ts. */
  'decide',
  /** Sending a request to an endpoint. */
  'forward',
  /** Frames of an endpoint. */
  'upstream',
  /** Passing the response on to the client. */
  'answer',
  /** Metrics, logs and audit of a request. */
  'observe',
  /** Output to sockets. */
  'write',
  /** The embedded API server. */
  'api-server',
  /** The webhooks. */
  'webhook',
  /** The admin and health listeners. */
  'admin',
  /** Compiling a configuration and putting it in force. */
  'snapshot',
  /** A thread's reports to the main thread, and their processing. */
  'report',
  /** Garbage collection. */
  'gc',
  /** The thread did not run: no CPU was free, or it waited for a disk. */
  'off-cpu',
  /** None of these. */
  'unknown',
] as const

export type Step = (typeof STEPS)[number]
/** Steps that can be marked. */
type MarkedStep = Exclude<Step, 'gc' | 'off-cpu' | 'unknown'>

/** The request being worked on. */
interface Worked {
  readonly auditId: string
}

/** A step that took too long. Times from `performance.now()`. */
export interface LongStep {
  readonly step: MarkedStep
  readonly fromMs: number
  readonly toMs: number
  /** '' = no request, or one without an Audit-ID. */
  readonly auditId: string
}

/** The marked ones, as numbers: every chunk that is read is marked. */
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
/** Start time; in an array, because a variable would allocate a heap number with each mark. */
const since = new Float64Array(1)
let request: Worked | undefined
let thresholdMs = Number.POSITIVE_INFINITY
let long: LongStep[] = []
/** Milliseconds per step since the last check of the watch. */
const spent = new Float64Array(MARKED.length)

/** The event loop has invoked a callback. @param nowMs from `performance.now()` */
export function beginStep(next: number, nowMs: number): void {
  step = next
  since[0] = nowMs
  request = undefined
}

/** Continues the current work as another step. */
function nextStep(next: number, nowMs: number): void {
  if (step !== NOTHING) close(nowMs)
  step = next
  since[0] = nowMs
}

/** The same, with a time from the clock shared by all threads. @param monotonicMs from `systemClock.monotonic()` */
export function nextStepAt(next: number, monotonicMs: number): void {
  nextStep(next, monotonicMs - MONOTONIC_OFFSET_MS)
}

/** Back to the event loop. */
export function endStep(nowMs: number): void {
  if (step !== NOTHING) close(nowMs)
  step = NOTHING
  request = undefined
}

/** Sets the request for which subsequent steps are done. */
export function workOn(worked: Worked): void {
  request = worked
}

/** Runs a rare operation as its own step, nested or not. @param worked default: the current request */
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

/** Overlong steps since the last call. */
export function takeLong(): readonly LongStep[] {
  if (long.length === 0) return NONE
  const taken = long
  long = []
  return taken
}

/** The step with the most time since the last call, if at least `leastMs`, in however many pieces; undefined = nothing marked. */
export function takeMost(leastMs: number): MarkedStep | undefined {
  let most = 0
  for (let i = 1; i < spent.length; i++) if ((spent[i] ?? 0) > (spent[most] ?? 0)) most = i
  const found = (spent[most] ?? 0) >= leastMs ? MARKED[most] : undefined
  spent.fill(0)
  return found
}

/** A step that began after `sinceWhenMs` and whose end was not marked, such as work that continues after a promise. */
export function takeOpen(sinceWhenMs: number, nowMs: number): LongStep | undefined {
  if (step === NOTHING || sinceMs() < sinceWhenMs) return undefined
  const open = marked(nowMs)
  step = NOTHING
  request = undefined
  return open
}

const NONE: readonly LongStep[] = []
