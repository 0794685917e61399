// Counts and logs overlong turns of a thread's event loop.

import { STALL_SECONDS, STALLS } from '../../gateway/metrics/descriptors.ts'
import type { MetricsRecorder } from '../../gateway/metrics/recorder.ts'
import type { Logger } from '../../kit/api/ports.ts'
import { type Stall, watchStalls } from '../../kit/io/stalls/stall-watch.ts'
import { STEPS } from '../../kit/io/stalls/steps.ts'

/** Minimum interval of a thread's log lines: they are examples, the metric counts. */
const RARE_LINE_MS = 1_000
/** Minimum interval of lines about times when the thread did not run: on a busy machine that happens all the time. */
const SUMMARY_MS = 60_000
const ONE_DECIMAL = 10

interface StallReports {
  /** `main`, or a gateway thread's number. */
  readonly thread: string
  readonly thresholdMs: number
  readonly metrics: Pick<MetricsRecorder, 'add'>
  readonly log: StallLog
}

type StallLog = Pick<Logger, 'warn' | 'info'>

/** Active until the returned function is called. */
export function reportStalls({ thread, thresholdMs, metrics, log }: StallReports): () => void {
  // Makes steps that never stalled 0 instead of absent.
  for (const step of STEPS) count(step, 0, 0)
  function count(step: Stall['step'], stalls: number, seconds: number): void {
    metrics.add(STALLS, stalls, thread, step)
    metrics.add(STALL_SECONDS, seconds, thread, step)
  }
  const write = stallLines(thread, log)
  return watchStalls({
    thresholdMs,
    onStall(stall) {
      count(stall.step, 1, stall.ms / 1000)
      write(stall, performance.now())
    },
  })
}

/** Writes a thread's log lines: a warning for stalls caused by the gateway, a summary for those caused by the machine. */
export function stallLines(thread: string, log: StallLog): (stall: Stall, nowMs: number) => void {
  let toldMs = Number.NEGATIVE_INFINITY
  let untold = 0
  const away = { toldMs: Number.NEGATIVE_INFINITY, times: 0, ms: 0, longestMs: 0 }
  function sumUp(ms: number, nowMs: number): void {
    away.times++
    away.ms += ms
    away.longestMs = Math.max(away.longestMs, ms)
    if (nowMs - away.toldMs < SUMMARY_MS) return
    log.info('the machine did not let a thread run', {
      thread,
      times: away.times,
      milliseconds: rounded(away.ms),
      longestMilliseconds: rounded(away.longestMs),
    })
    Object.assign(away, { toldMs: nowMs, times: 0, ms: 0, longestMs: 0 })
  }
  return ({ step, during, ms, cpuMs, auditId }, nowMs) => {
    if (step === 'off-cpu') {
      sumUp(ms, nowMs)
      return
    }
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
  }
}

function rounded(ms: number): number {
  return Math.round(ms * ONE_DECIMAL) / ONE_DECIMAL
}
