// Detects overlong turns of a thread's event loop and names the cause. Marked steps (steps.ts) are exact. Unmarked work is detected by a timer that
// fires late; so is anything that kept the whole thread from running.

import { PerformanceObserver } from 'node:perf_hooks'
import process from 'node:process'
import { type LongStep, type Step, setThreshold, takeLong, takeMost, takeOpen } from './steps.ts'

/** An overlong turn of the event loop. */
export interface Stall {
  /** What occupied the loop. */
  readonly step: Step
  /** The marked step: differs from `step` for garbage collection and if the thread did not run. '' = none. */
  readonly during: string
  readonly ms: number
  /** CPU time of the thread, in this turn and up to 20 ms before it. */
  readonly cpuMs: number
  /** Audit-ID of the request being worked on; '' = none. */
  readonly auditId: string
}

interface StallWatchOptions {
  /** Minimum duration of a stall. Milliseconds. */
  readonly thresholdMs: number
  onStall(stall: Stall): void
}

/** Check interval: unmarked stalls are certainly detected if they exceed the threshold by this much, and with 50% probability at half of it. */
const LOOK_MS = 20
/** Shorter garbage collections cause no stall. */
const LEAST_GC_MS = 5
const MOST_GC_KEPT = 32

interface Pause {
  readonly fromMs: number
  readonly toMs: number
}

/** A stall whose garbage collections are not known yet: they are reported after the turn. */
interface Found extends Pause {
  readonly step: LongStep['step'] | 'unknown'
  readonly cpuMs: number
  readonly auditId: string
}

let watching = false

/**
 * Watches this thread's event loop until the returned function is called. Does not keep the thread alive. A second watch of the same thread does
 * nothing: gateways that share one, in tests, are watched by the first.
 */
export function watchStalls(options: StallWatchOptions): () => void {
  if (watching) return () => undefined
  watching = true
  const watch = new StallWatch(options)
  return () => {
    watch.stop()
    watching = false
  }
}

class StallWatch {
  readonly #options: StallWatchOptions
  readonly #timer: NodeJS.Timeout
  readonly #collections: PerformanceObserver
  #lookedMs = performance.now()
  #cpuMs = threadCpuMs()
  #found: Found[] = []
  #pauses: Pause[] = []

  constructor(options: StallWatchOptions) {
    this.#options = options
    setThreshold(options.thresholdMs)
    takeLong()
    this.#collections = new PerformanceObserver((list) => {
      for (const { startTime, duration } of list.getEntries()) {
        if (duration < LEAST_GC_MS) continue
        if (this.#pauses.length >= MOST_GC_KEPT) this.#pauses.shift()
        this.#pauses.push({ fromMs: startTime, toMs: startTime + duration })
      }
    })
    this.#collections.observe({ entryTypes: ['gc'] })
    this.#timer = setInterval(() => this.#look(), LOOK_MS)
    this.#timer.unref()
  }

  stop(): void {
    clearInterval(this.#timer)
    this.#collections.disconnect()
    setThreshold(Number.POSITIVE_INFINITY)
  }

  #look(): void {
    this.#report()
    const fromMs = this.#lookedMs
    const nowMs = performance.now()
    const allCpuMs = threadCpuMs()
    const cpuMs = allCpuMs - this.#cpuMs
    this.#lookedMs = nowMs
    this.#cpuMs = allCpuMs
    const marked = takeLong()
    let unexplainedMs = nowMs - fromMs - LOOK_MS
    for (const { step, auditId, ...pause } of marked) {
      this.#found.push({ step, auditId, cpuMs, ...pause })
      unexplainedMs -= pause.toMs - pause.fromMs
    }
    const open = takeOpen(fromMs, nowMs)
    const most = takeMost(unexplainedMs / 2)
    if (unexplainedMs < this.#options.thresholdMs) return
    const { step = 'unknown', auditId = '' } = open ?? { step: most }
    this.#found.push({ step, auditId, cpuMs, fromMs: nowMs - unexplainedMs, toMs: nowMs })
  }

  /** Reports what the previous check found. */
  #report(): void {
    if (this.#found.length === 0) return
    const found = this.#found
    this.#found = []
    for (const stall of found) this.#options.onStall(this.#explain(stall))
    this.#pauses = []
  }

  #explain({ step, fromMs, toMs, cpuMs, auditId }: Found): Stall {
    const ms = toMs - fromMs
    let collectedMs = 0
    for (const pause of this.#pauses) {
      collectedMs += Math.max(0, Math.min(pause.toMs, toMs) - Math.max(pause.fromMs, fromMs))
    }
    const during = step === 'unknown' ? '' : step
    // With a CPU of its own, this would not have been a stall.
    if (cpuMs < this.#options.thresholdMs) return { step: 'off-cpu', during, ms, cpuMs, auditId }
    return { step: collectedMs >= ms / 2 ? 'gc' : step, during, ms, cpuMs, auditId }
  }
}

/** CPU time of this thread. */
function threadCpuMs(): number {
  const { user, system } = process.threadCpuUsage()
  return (user + system) / 1000
}
