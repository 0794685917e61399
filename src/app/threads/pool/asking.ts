// The main thread's side of questions to gateway threads, and of what they stream: who waits for which answer, and how many events a thread may
// send before its subscriber has taken them.

import type { Logger } from '../../../api/ports/ports.ts'
import type { Asked, FromAnswering, QuestionKind, Questions, StreamKind, Streams, Subscribed } from '../questions.ts'
import type { WorkerSlot } from './worker-slot.ts'

/** A thread's answer. */
export interface ThreadAnswer<K extends QuestionKind> {
  /** Its number, from 0. */
  readonly thread: number
  readonly answer: Questions[K]['answer']
}

export interface AskOptions {
  /** A thread that has not answered by then is left out. Default 1000. */
  readonly timeoutMs?: number
  /** Threads that have not answered when it aborts are left out. */
  readonly signal?: AbortSignal
}

export interface SubscribeOptions<K extends StreamKind> {
  /**
   * Takes events of a thread, in their order, and how many it has dropped before them. The thread may send as many more once the result has
   * resolved; a rejection ends the subscription.
   */
  readonly onEvents: (events: readonly Streams[K]['event'][], dropped: number, thread: number) => Promise<void> | void
  /** Events of one thread that may be on their way or waiting. Default 256. */
  readonly credit?: number
}

const ANSWER_MS = 1_000
const CREDIT = 256

interface Subscription {
  readonly message: Subscribed
  readonly take: (events: readonly unknown[], dropped: number, thread: number) => Promise<void> | void
}

export class ThreadQuestions {
  readonly #slots: readonly WorkerSlot[]
  readonly #log: Logger
  /** By id of the question: what settles it; undefined = without an answer. */
  readonly #waiting = new Map<number, { readonly slot: WorkerSlot; settle(message: FromAnswering | undefined): void }>()
  readonly #subscriptions = new Map<number, Subscription>()
  #nextId = 1

  constructor(slots: readonly WorkerSlot[], log: Logger) {
    this.#slots = slots
    this.#log = log
  }

  /** The answers, in the order of the threads; those that are gone, fail or take too long are left out. Never rejects. */
  async ask<K extends QuestionKind>(
    kind: K,
    question: Questions[K]['question'],
    options: AskOptions = {},
  ): Promise<readonly ThreadAnswer<K>[]> {
    const answers = await Promise.all(this.#slots.map((slot) => this.#askOne(slot, kind, question, options)))
    return answers.filter((answer) => answer !== undefined)
  }

  /** Streams of all threads, also of those that start later, until the function that it returns is called. */
  subscribe<K extends StreamKind>(
    kind: K,
    question: Streams[K]['question'],
    { onEvents, credit = CREDIT }: SubscribeOptions<K>,
  ): () => void {
    const id = this.#nextId++
    // The compiler does not see that the question is that of the kind.
    const message = { type: 'subscribe', id, kind, question, credit } as Subscribed
    // The type of the events is that of the kind: the thread's handler has it.
    this.#subscriptions.set(id, { message, take: onEvents as Subscription['take'] })
    for (const slot of this.#slots) if (slot.takesMessages) slot.post(message)
    return () => this.#unsubscribe(id)
  }

  /** A thread takes messages now. */
  online(slot: WorkerSlot): void {
    for (const { message } of this.#subscriptions.values()) slot.post(message)
  }

  gone(slot: WorkerSlot): void {
    for (const waiting of this.#waiting.values()) if (waiting.slot === slot) waiting.settle(undefined)
  }

  receive(slot: WorkerSlot, message: FromAnswering): void {
    if (message.type === 'events') void this.#take(slot, message.id, message.events, message.dropped)
    else if (this.#subscriptions.has(message.id)) this.#tell(slot, message)
    else this.#waiting.get(message.id)?.settle(message)
  }

  #tell(slot: WorkerSlot, message: FromAnswering): void {
    if (message.type !== 'no-answer') return
    this.#log.warn('a gateway thread does not stream', { thread: slot.index, reason: message.reason })
  }

  #askOne<K extends QuestionKind>(
    slot: WorkerSlot,
    kind: K,
    question: Questions[K]['question'],
    { timeoutMs = ANSWER_MS, signal }: AskOptions,
  ): Promise<ThreadAnswer<K> | undefined> {
    if (!slot.takesMessages || signal?.aborted) return Promise.resolve(undefined)
    const id = this.#nextId++
    return new Promise((resolve) => {
      const settle = (message: FromAnswering | undefined): void => {
        clearTimeout(deadline)
        signal?.removeEventListener('abort', giveUp)
        this.#waiting.delete(id)
        if (message?.type === 'no-answer') {
          this.#log.warn('a gateway thread cannot answer', { thread: slot.index, kind, reason: message.reason })
        }
        // The type of an answer is that of its kind: the thread's handler has it.
        if (message?.type === 'answer')
          resolve({ thread: slot.index, answer: message.answer as Questions[K]['answer'] })
        else resolve(undefined)
      }
      const giveUp = (): void => settle(undefined)
      const deadline = setTimeout(giveUp, timeoutMs)
      signal?.addEventListener('abort', giveUp)
      this.#waiting.set(id, { slot, settle })
      // The question is that of the kind, as the parameters say.
      slot.post({ type: 'ask', id, kind, question } as Asked)
    })
  }

  async #take(slot: WorkerSlot, id: number, events: readonly unknown[], dropped: number): Promise<void> {
    const { threadId } = slot
    try {
      await this.#subscriptions.get(id)?.take(events, dropped, slot.index)
    } catch (error) {
      this.#log.debug('a subscription of threads has ended', { error })
      this.#unsubscribe(id)
    }
    const same = slot.threadId === threadId && slot.takesMessages
    if (same && this.#subscriptions.has(id)) slot.post({ type: 'credit', id, events: events.length })
  }

  #unsubscribe(id: number): void {
    if (!this.#subscriptions.delete(id)) return
    for (const slot of this.#slots) if (slot.takesMessages) slot.post({ type: 'unsubscribe', id })
  }
}
