// Counts and logs the turns of a thread's event loop that take too long.

import type { Logger } from '../../api/ports/ports.ts'
import { STALL_SECONDS, STALLS } from '../../io/metrics/descriptors.ts'
import type { MetricsRecorder } from '../../io/metrics/recorder.ts'
import { type Stall, watchStalls } from '../../io/stalls/stall-watch.ts'
import { STEPS } from '../../io/stalls/steps.ts'

/** Between two lines of a thread's log: they are examples, the metric counts. */
const RARE_LINE_MS = 1_000
const ONE_DECIMAL = 10

export interface StallReports {
  /** `main`, or the number of a gateway thread. */
  readonly thread: string
  readonly thresholdMs: number
  readonly metrics: Pick<MetricsRecorder, 'add'>
  readonly log: Pick<Logger, 'warn'>
}

/** Until what it returns is called. */
export function reportStalls({ thread, thresholdMs, metrics, log }: StallReports): () => void {
  // So that what never happened is 0, not absent.
  for (const step of STEPS) count(step, 0, 0)
  let toldMs = Number.NEGATIVE_INFINITY
  let untold = 0
  function count(step: Stall['step'], stalls: number, seconds: number): void {
    metrics.add(STALLS, stalls, thread, step)
    metrics.add(STALL_SECONDS, seconds, thread, step)
  }
  return watchStalls({
    thresholdMs,
    onStall({ step, during, ms, cpuMs, auditId }) {
      count(step, 1, ms / 1000)
      const nowMs = performance.now()
      if (nowMs - toldMs < RARE_LINE_MS) {
        untold++
        return
      }
      log.warn('the event loop stood still', {
        thread,
        step,
        ...(during !== '' && during !== step && { during }),
        milliseconds: rounded(ms),
        cpuMilliseconds: rounded(cpuMs),
        ...(auditId !== '' && { auditId }),
        ...(untold > 0 && { notLogged: untold }),
      })
      toldMs = nowMs
      untold = 0
    },
  })
}

function rounded(ms: number): number {
  return Math.round(ms * ONE_DECIMAL) / ONE_DECIMAL
}
