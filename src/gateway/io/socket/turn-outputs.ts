// Connections with output, each written once at the end of a turn of the event loop.

import { AT, beginStep, endStep } from '../../../kit/io/stalls/steps.ts'
import { Fifo } from '../../core/thread-time/fifo.ts'
import { threadScheduler } from '../scheduling/thread-scheduler.ts'

/** A connection with output. */
export interface TurnOutput {
  /** Writes what there is. */
  writeOut(): void
  /** Charges the time that took. */
  written(sinceMs: number, nowMs: number): void
}

/** In order: those within their part of the thread's time, and others. */
const within = new Fifo<TurnOutput>()
const over = new Fifo<TurnOutput>()
/** Number of turns in which something was written: a cheap clock to tell what is recent. */
let turns = 0

export function writingTurns(): number {
  return turns
}

/** @param isOver its source has used more than its part of the thread's time */
export function writeAtTurnEnd(output: TurnOutput, isOver: boolean): void {
  if (isOver) over.push(output)
  else within.push(output)
  threadScheduler.schedule()
}

/** Writes at least one of each list; what is added meanwhile is left for the next turn. */
function writeAll(startMs: number, untilMs: number): boolean {
  if (within.length === 0 && over.length === 0) return false
  turns++
  beginStep(AT.write, startMs)
  let nowMs = writeSome(within, untilMs, startMs)
  nowMs = writeSome(over, untilMs, nowMs)
  endStep(nowMs)
  return within.length > 0 || over.length > 0
}

function writeSome(outputs: Fifo<TurnOutput>, untilMs: number, startMs: number): number {
  let nowMs = startMs
  for (let left = outputs.length; left > 0; left--) {
    const output = outputs.shift()
    if (output === undefined) break
    output.writeOut()
    const sinceMs = nowMs
    nowMs = performance.now()
    output.written(sinceMs, nowMs)
    if (nowMs >= untilMs) break
  }
  return nowMs
}

threadScheduler.setOutputs({ flush: writeAll })
