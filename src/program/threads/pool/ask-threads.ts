// Calls from the main thread to all gateway threads, omitting those that are gone, fail or take too long.

import type { Logger } from '../../../kit/api/ports.ts'
import { CallError } from '../../../kit/core/topics/call-error.ts'
import type { AskOptions, OfThread } from '../../../kit/core/topics/questions.ts'
import type { AnswerOf, ArgumentOf } from '../calls.ts'
import type { MainCalls } from '../thread-calls.ts'
import type { WorkerSlot } from './worker-slot.ts'

export type MainCall = keyof MainCalls

export type ThreadAnswer<K extends MainCall> = OfThread<AnswerOf<MainCalls, K>>

const ANSWER_MS = 1_000

/** The answers, in thread order. Never rejects. */
export async function askThreads<K extends MainCall>(
  slots: readonly WorkerSlot[],
  log: Logger,
  name: K,
  argument: ArgumentOf<MainCalls, K>,
  options: AskOptions = {},
): Promise<readonly ThreadAnswer<K>[]> {
  const answers = await Promise.all(slots.map((slot) => askThread(slot, log, name, argument, options)))
  return answers.filter((answer) => answer !== undefined)
}

/** undefined = omitted. Never rejects. */
export async function askThread<K extends MainCall>(
  slot: WorkerSlot,
  log: Logger,
  name: K,
  argument: ArgumentOf<MainCalls, K>,
  { timeoutMs = ANSWER_MS, signal }: AskOptions = {},
): Promise<ThreadAnswer<K> | undefined> {
  try {
    return { thread: slot.index, answer: await slot.call(name, argument, { timeoutMs, signal }) }
  } catch (error) {
    if (!(error instanceof CallError)) throw error
    if (error.failure === 'failed') {
      log.warn('a gateway thread cannot answer', { thread: slot.index, kind: name, reason: error.message })
    }
    return undefined
  }
}
