// Divides a thread's time among the sources whose work it does. Each piece of work is charged to its source. Work within a source's share is done at
// once; excess work waits and gets slices between turns of the event loop, source by source. One instance per thread, like the event loop.

import type { Charge } from '../../../kit/api/stream.ts'
import { Queued, RoundRobinQueue } from '../../../kit/core/queues/round-robin-queue.ts'
import type { ShareReport } from '../../../kit/core/shares/shares-report.ts'
import { addTickable, removeTickable, type Tickable } from '../../../kit/io/world/coarse-ticker.ts'
import { type Account, Accounts, type Waiter } from '../../core/thread-time/accounts.ts'
import { FairQueue, OWED_PAUSE_MS } from '../../core/thread-time/fair-queue.ts'

/** Longest piece of work while other sources are active: they wait for a few of them at most. Milliseconds. */
const SLICE_MS = 0.5
/** The same if the source is alone. */
export const LONG_SLICE_MS = 4
/**
 * Work too small to deserve an end-of-turn callback of its own, which costs an extra round of the event loop: it is counted with the next turn that
 * has one because of output.
 */
const NOTABLE_MS = 0.125
/** Frames between two clock reads: a request takes about 10 us. */
const FRAMES_A_LOOK = 8

/**
 * Requests in flight above which a waiting source gets its turn only now and then while others are active: at full speed, its further requests would
 * delay the responses of others behind its own, here and upstream.
 */
const MOST_OWED = 64
/** Fraction of the slice for endpoint input that goes to responses for such sources. */
const BULK_PART = 0.25
/**
 * Fraction of it while output waits. What endpoints send becomes output, so less of it is read then; but not nothing: output may be the gateway's own
 * answers, such as the read cache's, and reviews and the responses to other clients must not wait until those have ended.
 */
const PART_BESIDE_OUTPUT = 0.25
/** Readers resumed per iteration: each takes some 0.1 ms in the kernel and TLS, which our code cannot measure. */
const READS_PER_ITERATION = 2

/** Output of connections, written once per turn. */
interface Outputs {
  /** Writes from `nowMs` until `untilMs`. @returns whether output is left */
  flush(nowMs: number, untilMs: number): boolean
}

/** Reads large amounts, and pauses regularly. */
export abstract class PacedReader extends Queued {
  /** Its turn has come. */
  abstract resume(): void
}

/** Work that waited, of users and of unauthenticated clients. */
interface Waited {
  known: number
  unknown: number
}

class ThreadScheduler implements Tickable {
  readonly #accounts: Accounts
  readonly #queue: FairQueue
  #outputs: Outputs | undefined
  /** Requests in flight of a source: see setInFlight. */
  #inFlight: (charge: Charge) => number = () => 0
  #isLater = false
  /** Connections to endpoints, whose work belongs to no single source. Done in each turn, before waiting work. */
  readonly #shared: Waiter[] = []
  /** Those with responses to sources that are `isBulk`: after the others. */
  readonly #bulk: Waiter[] = []
  readonly #readers: RoundRobinQueue<PacedReader> = new RoundRobinQueue()
  #scheduled = false
  /** Number of event loop iterations in which work was done. */
  #iteration = 0
  #sharedMs = 0
  #outputWaits = false
  #startMs = 0
  #untilMs = 0
  #framesLeft = 0
  /** Input bytes that wait. */
  keptBytes = 0
  /** Pieces of work that had to wait, since last taken. */
  #waited: Waited = { known: 0, unknown: 0 }
  #ticking = false
  /** Endpoint input is being read, until `sharedDone`. */
  #isShared = false
  /** Number of slices begun. */
  #slices = 0
  // Measured cost of a response: a unit is one event, or 4 KiB.
  #unitMs = 0.005
  #units = 0
  /** The source that is charged for those units: that of the latest responses. */
  #unitsOf: Charge | undefined
  #unitsOfOne = 0

  constructor() {
    this.#accounts = new Accounts(performance.now())
    this.#queue = new FairQueue(
      () => performance.now(),
      (account, ms, nowMs) => this.#accounts.charge(account, ms, nowMs),
      (account) => this.isBulk(account),
    )
  }

  /** How much work had to wait since the last call. */
  takeWaited(): Readonly<Waited> {
    const waited = this.#waited
    this.#waited = { known: 0, unknown: 0 }
    return waited
  }

  /** The sources that used most of the last second. */
  report(): ShareReport[] {
    return this.#accounts.report(performance.now())
  }

  setOutputs(outputs: Outputs): void {
    this.#outputs = outputs
  }

  /** @param inFlight unanswered requests of a source, in this thread */
  setInFlight(inFlight: (charge: Charge) => number): void {
    this.#inFlight = inFlight
  }

  accountOf(charge: Charge, nowMs: number): Account {
    if (!this.#ticking) {
      this.#ticking = true
      addTickable(this)
    }
    return this.#accounts.of(charge, nowMs)
  }

  /** Closes unused accounts; a thread without any stops ticking. */
  tick(nowMs: number): void {
    this.#accounts.sweep(nowMs)
    if (this.#accounts.size > 0) return
    this.#ticking = false
    removeTickable(this)
  }

  /** Before the thread serves clients: what was done by then was done for none. */
  forgetSources(): void {
    this.#accounts.clear(performance.now())
    this.takeWaited()
  }

  get #sliceMs(): number {
    return this.hasOthers ? SLICE_MS : LONG_SLICE_MS
  }

  /** Whether several sources have used the thread lately. */
  get hasOthers(): boolean {
    return this.#accounts.size > 1
  }

  /** `reader` has paused and wants to continue: at once if its source is alone, else when it is the source's turn. */
  readOn({ source }: Charge, reader: PacedReader): void {
    if (!this.hasOthers) {
      reader.resume()
      return
    }
    this.#readers.add(reader, source)
    this.schedule()
  }

  /** Number of connections whose work waits. */
  get waiting(): number {
    return this.#queue.length + this.#shared.length + this.#bulk.length + this.#readers.count
  }

  /** Whether work of this source is done at once. If so, `goOn` says for how long. Otherwise keep it, and call `wait`. */
  begin(account: Account, nowMs: number): boolean {
    const sliceMs = this.#sliceMs
    const usedMs = account.iteration === this.#iteration ? account.iterationMs : 0
    if (account.waits || usedMs >= sliceMs || this.#accounts.isOver(account, nowMs)) return false
    if (this.#shared.length > 0 && this.isBulk(account)) return false
    this.#beginSlice(nowMs, nowMs + sliceMs - usedMs)
    return true
  }

  /** Whether a source has so many requests in flight, while others are active, that their responses must not delay those of others. */
  isBulk(charge: Charge): boolean {
    return this.hasOthers && this.#inFlight(charge) >= MOST_OWED
  }

  /** The source has worked since `sinceMs`, without interruption. */
  charge(account: Account, sinceMs: number, nowMs: number): void {
    const ms = nowMs - sinceMs
    if (account.iteration !== this.#iteration) {
      account.iteration = this.#iteration
      account.iterationMs = 0
    }
    account.iterationMs += ms
    this.#accounts.charge(account, ms, nowMs)
    // Makes sure that the turn ends.
    if (account.iterationMs >= NOTABLE_MS) this.schedule()
  }

  /** Moves a connection's cost from before authentication to its user: otherwise its address would compete with its own users as a source. */
  move(from: Account, to: Account, ms: number, nowMs: number): void {
    this.#accounts.move(from, to, ms, nowMs)
  }

  wait(account: Account, waiter: Waiter): void {
    if (account.known) this.#waited.known++
    else this.#waited.unknown++
    this.#queue.add(account, waiter)
    this.schedule()
  }

  /**
   * Like `begin`, for endpoint input: all endpoints together have one slice per turn, and a part of it while output waits.
   * @param isBulk the connection is for responses to sources that are `isBulk`. Default: false
   */
  beginShared(nowMs: number, isBulk = false): boolean {
    const part = isBulk ? BULK_PART : this.#sharedPart
    const sliceMs = this.#sliceMs * part
    if (this.#sharedMs >= sliceMs || (isBulk && this.#outputWaits)) return false
    if (isBulk && this.#shared.length + this.#bulk.length > 0) return false
    this.#beginSlice(nowMs, nowMs + sliceMs - this.#sharedMs)
    this.#isShared = true
    return true
  }

  /** Responses were passed on since `sinceMs`; `chargeAnswer` has named their sources. */
  sharedDone(sinceMs: number, nowMs: number): void {
    const ms = nowMs - sinceMs
    this.#settleAnswers()
    this.#isShared = false
    this.#sharedMs += ms
    if (this.#sharedMs >= NOTABLE_MS) this.schedule()
    if (this.#units > 0) this.#unitMs += (ms / this.#units - this.#unitMs) * 0.02
    this.#units = 0
  }

  get #sharedPart(): number {
    return this.#outputWaits ? PART_BESIDE_OUTPUT : 1
  }

  waitShared(waiter: Waiter, isBulk = false): void {
    if (isBulk) this.#bulk.push(waiter)
    else this.#shared.push(waiter)
    this.schedule()
  }

  /** Part of a response to this source has arrived. One of the gateway's own is outside any slice, and its end is not reported. */
  chargeAnswer(charge: Charge, bytes: number): void {
    const units = 1 + bytes / 4096
    if (!this.#isShared) {
      const nowMs = performance.now()
      this.#accounts.charge(this.accountOf(charge, nowMs), units * this.#unitMs, nowMs)
      return
    }
    if (charge !== this.#unitsOf) {
      this.#settleAnswers()
      this.#unitsOf = charge
    }
    this.#units += units
    this.#unitsOfOne += units
  }

  /** Not called for every response: those that arrive together often belong to one source. */
  #settleAnswers(): void {
    const charge = this.#unitsOf
    if (charge === undefined || this.#unitsOfOne === 0) return
    const nowMs = this.#startMs
    this.#accounts.charge(this.accountOf(charge, nowMs), this.#unitsOfOne * this.#unitMs, nowMs)
    this.#unitsOfOne = 0
  }

  /** End of the current slice. */
  get untilMs(): number {
    return this.#untilMs
  }

  /** Checked after each frame: whether the slice continues. */
  goOn(): boolean {
    if (--this.#framesLeft > 0) return true
    this.#framesLeft = FRAMES_A_LOOK
    return performance.now() < this.#untilMs
  }

  /** Number of the latest slice. */
  get slice(): number {
    return this.#slices
  }

  /** Whether endpoint input is still being read in this slice. */
  isReadIn(slice: number): boolean {
    return this.#isShared && slice === this.#slices
  }

  #beginSlice(nowMs: number, untilMs: number): void {
    // Always a small integer, which V8 stores without allocating.
    this.#slices = (this.#slices + 1) & 0x3fffffff
    this.#startMs = nowMs
    this.#untilMs = untilMs
    this.#framesLeft = FRAMES_A_LOOK
  }

  /** For a waiter that works: `goOn` is true until then. */
  resumeSlice(nowMs: number, untilMs: number): void {
    this.#beginSlice(nowMs, untilMs)
  }

  /** Whether work is left for the end of this turn of the event loop, or of the next one. */
  get isScheduled(): boolean {
    return this.#scheduled
  }

  schedule(): void {
    if (this.#scheduled) return
    this.#scheduled = true
    setImmediate(this.#endIteration)
  }

  readonly #endIteration = (): void => {
    this.#scheduled = false
    this.#iteration++
    this.#sharedMs = 0
    const sliceMs = this.#sliceMs
    const outputs = this.#outputs
    let nowMs = performance.now()
    this.#outputWaits = outputs?.flush(nowMs, nowMs + sliceMs) ?? false
    if (this.#shared.length > 0) this.#serveShared(this.#shared, sliceMs * this.#sharedPart)
    if (this.#bulk.length > 0 && !this.#outputWaits) this.#serveShared(this.#bulk, sliceMs * BULK_PART)
    let isPaused = false
    if (this.#queue.length > 0) {
      nowMs = performance.now()
      isPaused = this.#queue.serve(nowMs + sliceMs)
    }
    for (let i = 0; i < READS_PER_ITERATION && this.#readers.count > 0; i++) this.#readers.next()?.resume()
    const isSharedLeft = this.#shared.length + this.#bulk.length + this.#readers.count > 0
    if (this.#outputWaits || isSharedLeft || (this.#queue.length > 0 && !isPaused)) this.schedule()
    else if (this.#queue.length > 0) this.#scheduleLater()
  }

  /** All waiters are owed responses: until some arrive there is nothing to do. */
  #scheduleLater(): void {
    if (this.#isLater) return
    this.#isLater = true
    setTimeout(() => {
      this.#isLater = false
      this.schedule()
    }, OWED_PAUSE_MS)
  }

  #serveShared(waiters: Waiter[], sliceMs: number): void {
    let nowMs = performance.now()
    const untilMs = nowMs + sliceMs
    for (let left = waiters.length; left > 0 && nowMs < untilMs; left--) {
      const waiter = waiters.shift()
      this.#isShared = true
      if (waiter?.work(untilMs)) waiters.push(waiter)
      nowMs = performance.now()
    }
  }
}

export const threadScheduler: ThreadScheduler = new ThreadScheduler()
