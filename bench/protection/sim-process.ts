// Processes in simulated time. The controllers of src/ run in them as they are: what they know of time is `Clock` and the timers of
// the runtime, and both go by the queue of the world here. A process that crashes does nothing any more, whatever it had begun.

import type { Clock } from '../../src/kit/api/ports.ts'
import { EPOCH_MS } from './sim-cell.ts'
import type { SimQueue } from './sim-queue.ts'

export class SimProcess {
  readonly clock: Clock
  readonly #queue: SimQueue
  #alive = true

  /** @param skewMs by which its wall clock is ahead */
  constructor(queue: SimQueue, skewMs: number) {
    this.#queue = queue
    this.clock = { now: () => Math.floor(EPOCH_MS + queue.now + skewMs), monotonic: () => queue.now }
  }

  crash(): void {
    this.#alive = false
  }

  /** `act` happens in the process. */
  after(delayMs: number, act: () => void): void {
    this.at(this.#queue.now + delayMs, act)
  }

  at(atMs: number, act: () => void): void {
    this.#queue.at(atMs, () => this.run(act))
  }

  run(act: () => void): void {
    if (!this.#alive) return
    running = this
    act()
  }

  /** A promise that the process waits for: what comes of it happens in the process, or never. */
  answer<T>(ask: (resolve: (value: T) => void, reject: (error: unknown) => void) => void): Promise<T> {
    const { promise, resolve, reject } = Promise.withResolvers<T>()
    ask(
      (value) => this.run(() => resolve(value)),
      (error) => this.run(() => reject(error)),
    )
    return promise
  }
}

/** The process that runs now; its timers are its own. */
let running: SimProcess | undefined

const realImmediate = globalThis.setImmediate

class SimTimer {
  stopped = false
  unref(): this {
    return this
  }
  ref(): this {
    return this
  }
}

/**
 * Calls `begin`, then lets happen everything up to `endMs`, with the timers of the runtime in simulated time. After each thing that happened in a process all that
 * follows from it without waiting has happened before the next one begins.
 */
export async function runProcesses(queue: SimQueue, endMs: number, begin: () => void): Promise<void> {
  const saved = new Map<string, PropertyDescriptor | undefined>()
  const put = (name: string, value: unknown): void => {
    saved.set(name, Object.getOwnPropertyDescriptor(globalThis, name))
    Object.defineProperty(globalThis, name, { configurable: true, writable: true, value })
  }
  const start = (delayMs: number, act: () => void, again: boolean): SimTimer => {
    const timer = new SimTimer()
    const process = running
    const waitMs = Math.max(1, Math.trunc(delayMs))
    const wait = (ms: number): void => {
      process?.after(ms, () => {
        if (timer.stopped) return
        if (again) wait(waitMs)
        act()
      })
    }
    wait(delayMs < 0 ? 0 : waitMs)
    return timer
  }
  const clear = (timer: SimTimer | undefined): void => {
    if (timer !== undefined) timer.stopped = true
  }
  put('setTimeout', (act: () => void, delayMs = 1) => start(delayMs, act, false))
  put('setInterval', (act: () => void, delayMs = 1) => start(delayMs, act, true))
  put('setImmediate', (act: () => void) => start(-1, act, false))
  for (const name of ['clearTimeout', 'clearInterval', 'clearImmediate']) put(name, clear)
  try {
    queue.at(0, begin)
    for (;;) {
      running = undefined
      if (!queue.step(endMs)) return
      if (running !== undefined) await new Promise<void>((resolve) => void realImmediate(resolve))
    }
  } finally {
    running = undefined
    for (const [name, descriptor] of saved) {
      if (descriptor !== undefined) Object.defineProperty(globalThis, name, descriptor)
    }
  }
}
