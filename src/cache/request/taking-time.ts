// How long a client has had for what it is sent. While the thread has no moment left, what its clients would take may be waiting for the thread itself: such
// time counts a tenth.

/** By which a second is divided in which the thread had something to do all the time. */
const BUSY_PART = 10
/** An event loop that has waited this long in a second has written everything that clients take. */
const LEAST_IDLE_MS = 5

export class TakingTime {
  #atMs: number
  #countedMs = 0

  constructor(nowMs: number) {
    this.#atMs = nowMs
  }

  /** @param wasBusy whether the thread was, since the last call @returns milliseconds that count, so far */
  pass(nowMs: number, wasBusy: boolean): number {
    this.#countedMs += (nowMs - this.#atMs) / (wasBusy ? BUSY_PART : 1)
    this.#atMs = nowMs
    return this.#countedMs
  }

  /** It begins again. */
  restart(nowMs: number): void {
    this.#atMs = nowMs
    this.#countedMs = 0
  }
}

/** @returns whether this thread had something to do all the time since the last call */
export function busyThread(): () => boolean {
  let last = performance.eventLoopUtilization().idle
  return () => {
    const { idle } = performance.eventLoopUtilization()
    const waited = idle - last
    last = idle
    return waited < LEAST_IDLE_MS
  }
}
