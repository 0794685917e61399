// The time of a thread, divided among those whose work it does. Each piece of work is charged to its source. What a source within its
// part brings is done at once; what is more waits, and gets slices between the turns of the event loop, source after source.
// One instance for each thread, as there is one event loop.

import type { Charge } from '../../../kit/api/stream.ts'
import { Queued, TurnQueue } from '../../../kit/core/queues/turn-queue.ts'
import type { ShareReport } from '../../../kit/core/shares/shares-report.ts'
import { addTickable, removeTickable, type Tickable } from '../../../kit/io/world/coarse-ticker.ts'
import { type Account, Accounts, type Waiter } from '../../core/thread-time/accounts.ts'
import { FairQueue, OWED_PAUSE_MS } from '../../core/thread-time/fair-queue.ts'

/** Longest piece of work while others are there: what they wait for, at most, is a few of them. Milliseconds. */
export const SLICE_MS = 0.5
/** The same for somebody who is alone. */
export const LONG_SLICE_MS = 4
/**
 * Work that is not worth an end of the turn of its own, which is a further round of the event loop: it counts as that of the next turn that
 * has one, because something is to be written.
 */
const NOTABLE_MS = 0.125
/** Frames between two looks at the clock: a request takes about 10 us. */
const FRAMES_A_LOOK = 8

/**
 * Requests in flight above which a source that waits for its turn gets it only now and then, while others are there: what it asks for at
 * full speed beyond that makes the answers of others wait behind its own, here and upstream.
 */
const MOST_OWED = 64
/** The part of the slice for answers of endpoints that is for answers to such sources. */
const BULK_PART = 0.25
/** Readers that go on in a turn: each takes some 0.1 ms in which the system and TLS work, and no code of ours that could measure it. */
const READS_A_TURN = 2

/** Output of connections, which is written once in each turn. */
export interface Outputs {
  /** Writes from `nowMs` until `untilMs`. @returns whether something is left */
  flush(nowMs: number, untilMs: number): boolean
}

/** Reads much, and stops when it has read some. */
export abstract class PacedReader extends Queued {
  /** It is its turn again. */
  abstract resume(): void
}

/** Of users, and of those who are not authenticated. */
interface Waited {
  known: number
  unknown: number
}

class ThreadTurns implements Tickable {
  readonly #accounts: Accounts
  readonly #queue: FairQueue
  #outputs: Outputs | undefined
  /** Of a source: see setInFlight. */
  #inFlight: (charge: Charge) => number = () => 0
  #isLater = false
  /** Connections to endpoints, whose work is nobody's alone. It is done in each turn, before what waits. */
  readonly #shared: Waiter[] = []
  /** Those with answers to sources that are `isBulk`: behind the others. */
  readonly #bulk: Waiter[] = []
  readonly #readers: TurnQueue<PacedReader> = new TurnQueue()
  #scheduled = false
  /** Of the event loop, as far as something was done in it. */
  #turn = 0
  #sharedMs = 0
  #outputWaits = false
  #startMs = 0
  #untilMs = 0
  #framesLeft = 0
  /** Bytes that were read and wait. */
  keptBytes = 0
  /** Pieces of work that had to wait, since they were taken last. */
  #waited: Waited = { known: 0, unknown: 0 }
  #ticking = false
  /** What an endpoint has sent is being read, until `sharedDone`. */
  #isShared = false
  /** How many slices have begun. */
  #slices = 0
  // What an answer costs, as measured: a unit is one event, or 4 KiB.
  #unitMs = 0.005
  #units = 0
  /** Of these, what is charged to the source whose answers came last. */
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

  /** How much had to wait since the last call. */
  takeWaited(): Readonly<Waited> {
    const waited = this.#waited
    this.#waited = { known: 0, unknown: 0 }
    return waited
  }

  /** Who has used most of the last second. */
  report(): ShareReport[] {
    return this.#accounts.report(performance.now())
  }

  setOutputs(outputs: Outputs): void {
    this.#outputs = outputs
  }

  /** @param inFlight requests of a source that have not been answered, in this thread */
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

  /** Closes accounts that are not used any more; a thread without any has nothing to tick. */
  tick(nowMs: number): void {
    this.#accounts.sweep(nowMs)
    if (this.#accounts.size > 0) return
    this.#ticking = false
    removeTickable(this)
  }

  get #sliceMs(): number {
    return this.hasOthers ? SLICE_MS : LONG_SLICE_MS
  }

  /** Whether more than one source has used the thread lately. */
  get hasOthers(): boolean {
    return this.#accounts.size > 1
  }

  /** `reader` has stopped, and goes on: at once for whoever is alone, else when it is its source's turn. */
  readOn({ source }: Charge, reader: PacedReader): void {
    if (!this.hasOthers) {
      reader.resume()
      return
    }
    this.#readers.add(reader, source)
    this.schedule()
  }

  /** Connections whose work waits. */
  get waiting(): number {
    return this.#queue.length + this.#shared.length + this.#bulk.length + this.#readers.count
  }

  /**
   * Whether work of this source is done at once. Then `goOn` says how long.
   * Otherwise it is to be kept, and `wait` called.
   */
  begin(account: Account, nowMs: number): boolean {
    const sliceMs = this.#sliceMs
    const usedMs = account.turn === this.#turn ? account.turnMs : 0
    if (account.waits || usedMs >= sliceMs || this.#accounts.isOver(account, nowMs)) return false
    if (this.#shared.length > 0 && this.isBulk(account)) return false
    this.#beginSlice(nowMs, nowMs + sliceMs - usedMs)
    return true
  }

  /** Whether a source has so many requests in flight, while others are there, that their answers should be in nobody else's way. */
  isBulk(charge: Charge): boolean {
    return this.hasOthers && this.#inFlight(charge) >= MOST_OWED
  }

  /** The source has worked since `sinceMs`, in one go. */
  charge(account: Account, sinceMs: number, nowMs: number): void {
    const ms = nowMs - sinceMs
    if (account.turn !== this.#turn) {
      account.turn = this.#turn
      account.turnMs = 0
    }
    account.turnMs += ms
    this.#accounts.charge(account, ms, nowMs)
    // So that the turn has an end.
    if (account.turnMs >= NOTABLE_MS) this.schedule()
  }

  /** What a connection has cost while nobody was known for it is its user's: an address is nobody who shares the thread with its own users. */
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
   * As `begin`, for what an endpoint has sent: all endpoints together have one slice in a turn, and none while output waits.
   * @param isBulk the connection is for answers to sources that are `isBulk`. Default: false
   */
  beginShared(nowMs: number, isBulk = false): boolean {
    const sliceMs = isBulk ? this.#sliceMs * BULK_PART : this.#sliceMs
    if (this.#outputWaits || this.#sharedMs >= sliceMs) return false
    if (isBulk && this.#shared.length + this.#bulk.length > 0) return false
    this.#beginSlice(nowMs, nowMs + sliceMs - this.#sharedMs)
    this.#isShared = true
    return true
  }

  /** Answers were passed on since `sinceMs`; `chargeAnswer` has said whose. */
  sharedDone(sinceMs: number, nowMs: number): void {
    const ms = nowMs - sinceMs
    this.#settleAnswers()
    this.#isShared = false
    this.#sharedMs += ms
    if (this.#sharedMs >= NOTABLE_MS) this.schedule()
    if (this.#units > 0) this.#unitMs += (ms / this.#units - this.#unitMs) * 0.02
    this.#units = 0
  }

  waitShared(waiter: Waiter, isBulk = false): void {
    if (isBulk) this.#bulk.push(waiter)
    else this.#shared.push(waiter)
    this.schedule()
  }

  /** Part of an answer to this source has come. Over HTTP/1.1 it is not part of a slice, and nobody says when it is done. */
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

  /** Not with each answer: those that come together are often of one source. */
  #settleAnswers(): void {
    const charge = this.#unitsOf
    if (charge === undefined || this.#unitsOfOne === 0) return
    const nowMs = this.#startMs
    this.#accounts.charge(this.accountOf(charge, nowMs), this.#unitsOfOne * this.#unitMs, nowMs)
    this.#unitsOfOne = 0
  }

  /** When the slice that has begun is over. */
  get untilMs(): number {
    return this.#untilMs
  }

  /** Asked after each frame: whether the slice goes on. */
  goOn(): boolean {
    if (--this.#framesLeft > 0) return true
    this.#framesLeft = FRAMES_A_LOOK
    return performance.now() < this.#untilMs
  }

  /** The number of the latest slice. */
  get slice(): number {
    return this.#slices
  }

  /** Whether what an endpoint has sent is still being read in this slice. */
  isReadIn(slice: number): boolean {
    return this.#isShared && slice === this.#slices
  }

  #beginSlice(nowMs: number, untilMs: number): void {
    // A small integer at all times, which V8 keeps without allocating.
    this.#slices = (this.#slices + 1) & 0x3fffffff
    this.#startMs = nowMs
    this.#untilMs = untilMs
    this.#framesLeft = FRAMES_A_LOOK
  }

  /** For a waiter that works: `goOn` answers until then. */
  resumeSlice(nowMs: number, untilMs: number): void {
    this.#beginSlice(nowMs, untilMs)
  }

  schedule(): void {
    if (this.#scheduled) return
    this.#scheduled = true
    setImmediate(this.#endTurn)
  }

  readonly #endTurn = (): void => {
    this.#scheduled = false
    this.#turn++
    this.#sharedMs = 0
    const sliceMs = this.#sliceMs
    const outputs = this.#outputs
    let nowMs = performance.now()
    this.#outputWaits = outputs?.flush(nowMs, nowMs + sliceMs) ?? false
    if (!this.#outputWaits) {
      if (this.#shared.length > 0) this.#serveShared(this.#shared, sliceMs)
      if (this.#bulk.length > 0) this.#serveShared(this.#bulk, sliceMs * BULK_PART)
    }
    let isPaused = false
    if (this.#queue.length > 0) {
      nowMs = performance.now()
      isPaused = this.#queue.serve(nowMs + sliceMs)
    }
    for (let i = 0; i < READS_A_TURN && this.#readers.count > 0; i++) this.#readers.next()?.resume()
    const isSharedLeft = this.#shared.length + this.#bulk.length + this.#readers.count > 0
    if (this.#outputWaits || isSharedLeft || (this.#queue.length > 0 && !isPaused)) this.schedule()
    else if (this.#queue.length > 0) this.#scheduleLater()
  }

  /** All that wait are owed answers: until some have come there is nothing to do. */
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

export const turns: ThreadTurns = new ThreadTurns()
