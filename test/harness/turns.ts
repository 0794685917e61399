import { setImmediate } from 'node:timers/promises'
import { threadScheduler } from '../../src/gateway/io/scheduling/thread-scheduler.ts'

/** No test has work for as many. */
const MOST_TURNS = 1_000

/** A few turns of the event loop, or as many as the thread has work for: everything that was going to happen by itself has happened. */
export async function turns(): Promise<void> {
  for (let i = 0; i < 4 || (threadScheduler.isScheduled && i < MOST_TURNS); i++) await setImmediate()
}
