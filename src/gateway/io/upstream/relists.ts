// Paces lists and new watches of one cluster after its connections broke: they are admitted at the rate of the server's responses, by source, and
// requests that would wait too long get a retry time instead. Everything else is unaffected.

import type { Charge, HeaderList, ResetReason, SharedFields, Stream, StreamEvents } from '../../../kit/api/stream.ts'
import { addTickable, removeTickable, type Tickable } from '../../../kit/io/world/coarse-ticker.ts'
import { type RelistOutcome, RelistWindow, SLOW_ANSWER_MS } from '../../core/upstream/relist-window.ts'
import type { WaitRefusal } from '../../core/upstream/wait-refusal.ts'
import { LONGEST_WAIT_MS, StreamQueue } from './stream-queue.ts'
import { type Carrier, type MayWait, type WaitingStream, waitRefusal } from './waiting.ts'

/** Long-running requests that end within a second, other than by their clients, count as an incident from this number on ... */
const MANY_LOST = 16
/** ... if they are at least one in this many of all. */
const LOST_OF = 4
/** A list whose response has begun, but does not end, then loses its slot: its client may be slow. */
const LONGEST_BODY_MS = 1_000
/** The same for one without a response. */
const LONGEST_ANSWER_MS = 5_000
/** Weight of the newest second in the moving average of the rate. */
const RATE_GAIN = 0.3

export class Relists implements Tickable {
  readonly #window = new RelistWindow()
  readonly #queue: StreamQueue = new StreamQueue(() => [])
  readonly #underway = new Set<PacedStream>()
  readonly #onChange: (active: boolean) => void
  #ticking = false
  /** Requests lost since the last tick. */
  #lost = 0
  #letIn = 0
  /** Requests admitted per second. */
  #rate = 0

  /** @param onChange pacing has begun or ended */
  constructor(onChange: (active: boolean) => void = () => undefined) {
    this.#onChange = onChange
  }

  /** Whether lists and watches must go through `open`. */
  get active(): boolean {
    return !this.#window.calm
  }

  get waiting(): number {
    return this.#queue.count
  }

  /** How many may be in flight; infinite while not active. */
  get size(): number {
    return this.#window.size
  }

  /**
   * Long-running requests have ended, other than by their clients.
   * @param open how many there are now
   */
  onStreamsEnded(count: number, open: () => number): void {
    if (count === 0) return
    this.#lost += count
    this.#tickFromNowOn()
    const lost = this.#lost
    if (lost < MANY_LOST || lost * LOST_OF < open() + lost) return
    this.#lost = 0
    const active = this.active
    this.#window.begin(performance.now())
    this.#rate = 0
    if (!active) this.#onChange(true)
  }

  /** Only while `active`. @param watch its response begins at once and never ends */
  open(
    to: Carrier,
    watch: boolean,
    head: HeaderList,
    shared: SharedFields | undefined,
    end: boolean,
    events: StreamEvents,
    charge: Charge,
  ): Stream {
    const carrier = new PacedCarrier(this, to, watch)
    if (this.#queue.count === 0 && this.#window.take()) return carrier.open(head, shared, end, events, charge)
    const stream = this.#queue.wait(head, shared, end, events, charge)
    stream.carrier = carrier
    this.#tellWhoWaitsInVain(stream)
    return stream
  }

  /** At the rate of the last seconds its turn would come too late: refuse it with a retry time instead of letting it wait. */
  #tellWhoWaitsInVain(stream: WaitingStream): void {
    const seconds = this.#likelySeconds
    if (seconds * 1000 > LONGEST_WAIT_MS) this.#queue.refuse(stream, 'relists', seconds)
  }

  /** Seconds until the last waiter's turn. */
  get #likelySeconds(): number {
    return this.#rate === 0 ? 0 : this.#queue.count / this.#rate
  }

  // === called by those that were let in ===

  begun(stream: PacedStream): void {
    this.#letIn++
    this.#underway.add(stream)
  }

  settled(stream: PacedStream, outcome: RelistOutcome): void {
    if (!this.#underway.delete(stream)) return
    this.#window.settle(outcome)
    this.#letInMore()
  }

  #letInMore(): void {
    while (this.#queue.count > 0 && this.#window.take()) {
      const stream = this.#queue.next()
      if (stream?.carrier === undefined) return
      stream.send(stream.carrier)
    }
  }

  // === time ===

  #tickFromNowOn(): void {
    if (this.#ticking) return
    this.#ticking = true
    addTickable(this)
  }

  tick(nowMs: number): void {
    this.#lost = 0
    const active = this.active
    if (active) {
      this.#rate += RATE_GAIN * (this.#letIn - this.#rate)
      this.#letIn = 0
      for (const stream of [...this.#underway]) stream.tick(nowMs)
      this.#queue.tick(nowMs, { limit: 'relists', likelySeconds: this.#likelySeconds })
      this.#window.tick(nowMs, this.#queue.count)
      this.#letInMore()
    }
    if (this.active) return
    if (active) this.#onChange(false)
    this.#ticking = false
    removeTickable(this)
  }

  destroy(): void {
    removeTickable(this)
    for (const stream of this.#queue.takeAll()) stream.refuse()
  }
}

/** Sends admitted requests. */
class PacedCarrier implements Carrier {
  readonly #relists: Relists
  readonly #to: Carrier
  readonly #watch: boolean

  constructor(relists: Relists, to: Carrier, watch: boolean) {
    this.#relists = relists
    this.#to = to
    this.#watch = watch
  }

  open(head: HeaderList, shared: SharedFields | undefined, end: boolean, events: StreamEvents, charge: Charge): Stream {
    const paced = new PacedStream(this.#relists, events, this.#watch)
    this.#relists.begun(paced)
    paced.stream = this.#to.open(head, shared, end, paced, charge)
    return paced
  }
}

/** An admitted request, until it has a response. */
class PacedStream implements MayWait, StreamEvents {
  /** Set as soon as it exists. */
  stream: Stream | undefined = undefined
  readonly #relists: Relists
  readonly #events: StreamEvents
  readonly #watch: boolean
  readonly #sinceMs = performance.now()
  #answeredAtMs = 0

  constructor(relists: Relists, events: StreamEvents, watch: boolean) {
    this.#relists = relists
    this.#events = events
    this.#watch = watch
  }

  onHeaders(list: HeaderList, end: boolean): void {
    const status = Number(list[1])
    if (status >= 200) {
      this.#answeredAtMs = performance.now()
      if (status === 429 || status >= 500) this.#relists.settled(this, 'overload')
      else if (end || this.#watch) this.#settleAnswered()
    }
    this.#events.onHeaders(list, end)
  }

  #settleAnswered(): void {
    const slow = this.#answeredAtMs - this.#sinceMs > SLOW_ANSWER_MS
    this.#relists.settled(this, slow ? 'slow' : 'good')
  }

  onBody(chunk: Buffer, end: boolean): void {
    if (end) this.#settleAnswered()
    this.#events.onBody(chunk, end)
  }

  onTrailers(list: HeaderList): void {
    this.#settleAnswered()
    this.#events.onTrailers(list)
  }

  onDrained(): void {
    this.#events.onDrained()
  }

  onReset(reason: ResetReason): void {
    this.#relists.settled(this, reason === 'head-too-large' ? 'given-up' : 'overload')
    this.#events.onReset(reason)
  }

  get refusal(): WaitRefusal | undefined {
    return waitRefusal(this.stream)
  }

  get queued(): number {
    return this.stream?.queued ?? 0
  }

  headers(list: HeaderList, end: boolean): void {
    this.stream?.headers(list, end)
  }

  body(chunk: Buffer, end: boolean): void {
    this.stream?.body(chunk, end)
  }

  trailers(list: HeaderList): void {
    this.stream?.trailers(list)
  }

  credit(bytes: number): void {
    this.stream?.credit(bytes)
  }

  reset(reason: ResetReason): void {
    this.#relists.settled(this, 'given-up')
    this.stream?.reset(reason)
  }

  tick(nowMs: number): void {
    if (this.#answeredAtMs > 0) {
      if (nowMs - this.#answeredAtMs >= LONGEST_BODY_MS) this.#settleAnswered()
    } else if (nowMs - this.#sinceMs >= LONGEST_ANSWER_MS) this.#relists.settled(this, 'slow')
  }
}
