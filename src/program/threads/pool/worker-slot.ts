// One slot among the gateway threads, from the main thread's point of view: its current thread and that thread's state. A dead thread is replaced in
// the same slot, and so in the same columns of shared memory.

import { createRestartHistory, type RestartHistory } from '../../../gateway/core/endpoints/restart-delay.ts'
import { CallError } from '../../../kit/core/topics/call-error.ts'
import type { AnsweredQuestion } from '../../../kit/core/topics/questions.ts'
import type { Movable, Thread, ThreadEvents } from '../../io/threads.ts'
import { type AnswerOf, type ArgumentOf, type CallHandlers, type CallOptions, Calls } from '../calls.ts'
import type { FromThread, ThreadData, ToThread } from '../messages.ts'
import type { GatewayCalls, MainCalls } from '../thread-calls.ts'

/** Creates a thread: a worker, or one inside the main thread. */
export type StartThread = (data: ThreadData, events: ThreadEvents<FromThread>) => Thread<ToThread>

/** `starting` until the thread takes messages, `online` until its ports are open, then `listening`; `gone` after it has ended. */
type WorkerSlotState = 'starting' | 'online' | 'listening' | 'gone'

/** The owner of all slots. */
export interface WorkerSlotOwner {
  /** Handlers of the threads' calls. */
  readonly handlers: CallHandlers<GatewayCalls>
  /** An answer for a thread that has ended. */
  onUnclaimed(answered: AnsweredQuestion): void
  /** Called with each message after the slot has processed it, except calls and their answers. */
  onMessage(slot: WorkerSlot, message: FromThread): void
  /** The thread has ended; `error` is the reason, if known. */
  onExit(slot: WorkerSlot, error: Error | undefined): void
}

export class WorkerSlot {
  readonly index: number
  readonly history: RestartHistory = createRestartHistory()
  readonly #start: StartThread
  readonly #data: Omit<ThreadData, 'linesTaken'>
  readonly #owner: WorkerSlotOwner
  #thread: Thread<ToThread> | undefined
  /** With the current thread. */
  #calls: Calls<MainCalls, GatewayCalls> | undefined
  #linesTaken = new Int32Array(new SharedArrayBuffer(4))
  state: WorkerSlotState = 'gone'
  /** Whether requests depend on it: not while a dead thread's replacement is starting. */
  counts = false
  drained = false
  ended = false
  /** Generation that the thread has put in force. */
  applied = 0
  restarts = 0
  /** Whether it answered the last request for a report. */
  answers = false
  ports: readonly number[] = []

  constructor(index: number, start: StartThread, data: Omit<ThreadData, 'linesTaken'>, owner: WorkerSlotOwner) {
    this.index = index
    this.#start = start
    this.#data = data
    this.#owner = owner
  }

  /** Whether there is a thread that reads messages. */
  get takesMessages(): boolean {
    return this.state === 'online' || this.state === 'listening'
  }

  /** Id of the current thread; 0 = none yet. */
  get threadId(): number {
    return this.#thread?.id ?? 0
  }

  /** How long the current thread's event loop was busy. */
  get busySeconds(): number {
    return (this.#thread?.busyMs() ?? 0) / 1000
  }

  /** Starts a new thread in this slot. */
  start(): void {
    let error: Error | undefined
    this.state = 'starting'
    this.applied = 0
    this.drained = false
    this.ended = false
    this.#linesTaken = new Int32Array(new SharedArrayBuffer(4))
    this.#thread = undefined
    this.#calls = this.#createCalls()
    const events: ThreadEvents<FromThread> = {
      onMessage: (message) => this.#onMessage(message),
      onError: (cause) => {
        error ??= cause
      },
      onExit: () => this.#onExit(error),
    }
    try {
      this.#thread = this.#start({ ...this.#data, linesTaken: this.#linesTaken }, events)
    } catch (cause) {
      // The system cannot start another thread.
      this.#onExit(cause instanceof Error ? cause : new Error(String(cause)))
    }
  }

  #onExit(error: Error | undefined): void {
    this.state = 'gone'
    this.counts = false
    this.#calls?.end('the thread has ended')
    this.#owner.onExit(this, error)
  }

  /** Like `Thread.post`. */
  post(message: ToThread, moved?: readonly Movable[]): void {
    this.#thread?.post(message, moved)
  }

  async terminate(): Promise<void> {
    await this.#thread?.terminate()
  }

  /** The current thread's answer. @throws {CallError} if there is none */
  call<K extends keyof MainCalls>(
    name: K,
    argument: ArgumentOf<MainCalls, K>,
    options: CallOptions,
  ): Promise<AnswerOf<MainCalls, K>> {
    if (this.#calls === undefined || !this.takesMessages)
      return Promise.reject(new CallError('ended', 'the thread takes no messages'))
    return this.#calls.call(name, argument, options)
  }

  #createCalls(): Calls<MainCalls, GatewayCalls> {
    return new Calls({
      post: (message) => this.post(message),
      handlers: this.#owner.handlers,
      onUnclaimed: (late) => {
        if (late.name === 'ask') this.#owner.onUnclaimed(late.answer)
      },
    })
  }

  #onMessage(message: FromThread): void {
    switch (message.type) {
      case 'call':
      case 'answer':
      case 'failure':
        this.#calls?.receive(message)
        return
      case 'online':
        this.state = 'online'
        break
      case 'listening':
        this.state = 'listening'
        this.counts = true
        this.ports = message.ports
        break
      case 'applied':
        this.applied = message.generation
        break
      case 'lines':
        Atomics.add(this.#linesTaken, 0, message.lines.size)
        break
      case 'drained':
        this.drained = true
        break
      case 'ended':
        this.ended = true
        break
      default:
    }
    this.#owner.onMessage(this, message)
  }
}
