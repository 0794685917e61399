// One tap: passes what this replica's threads and the other replicas show to the reader as lines of JSON, at most at the tap's rate and only as fast
// as the reader takes them, until it ends.

import { adminFault } from '../../../cli/io/admin-request.ts'
import type { StreamOut } from '../../../gateway/io/listener/http-plain.ts'
import type { Budget } from '../../../kit/api/limits/budget.ts'
import type { Clock } from '../../../kit/api/ports.ts'
import { safeJson } from '../../../kit/core/text/printable.ts'
import type { DropReason, TapEnd, TapLine } from '../../core/tap/tap-lines.ts'
import type { TapCounts, TapQuestion, TapThreadEvent } from '../../core/tap/tap-messages.ts'
import { type TapRequest, tapBudget } from '../../core/tap/tap-query.ts'
import type { TapPeer } from './tap-peers.ts'

/** Receives what a thread shows; the thread may show more once the result has resolved. */
type OnTapEvents = (events: readonly TapThreadEvent[], thread: number) => Promise<void>

interface TapSessionDeps {
  readonly request: TapRequest
  /** This replica's name. */
  readonly replica: string
  readonly clock: Clock
  /** Aborts when the reader disconnects. */
  readonly signal: AbortSignal
  /** Starts the stream; returns a function that ends it. */
  subscribe(question: TapQuestion, onEvents: OnTapEvents): () => void
  /** The same tap at the other replicas; default: this replica alone. Rejects if they cannot be determined. */
  peers?(): Promise<readonly TapPeer[]>
  /** Counts events that were just shown or dropped. */
  count(outcome: 'shown' | DropReason, events: number): void
}

/** How often the reader is told about dropped events. */
const TELL_MS = 1000
/** How often the replica sends something in any case: every so many of these. */
const PROGRESS_EVERY = 5

/** Prefix of other replicas' lines with events, which are not parsed. */
const REQUEST = '{"type":"request"'
const END = '{"type":"end"'

const NO_COUNTS: TapCounts = { seen: 0, matched: 0, aboveRate: 0, unread: 0 }

export class TapSession {
  readonly #deps: TapSessionDeps
  readonly #rate: Budget
  readonly #ended = Promise.withResolvers<TapEnd | undefined>()
  /** Latest counts of each thread. */
  readonly #counts = new Map<number, TapCounts>()
  readonly #dropped: Record<DropReason | 'elsewhere', number> = { rate: 0, reader: 0, elsewhere: 0 }
  /** The part of `#dropped` that was reported to the reader. */
  readonly #told: Record<DropReason, number> = { rate: 0, reader: 0 }
  #seen = 0
  #matched = 0
  #shown = 0
  #over = false
  /** Aborts when the tap is over. */
  readonly #closing = new AbortController()
  #ticks = 0
  /** Writes for which the reader has no room yet. */
  #waiting = 0
  #written: Promise<void> = Promise.resolve()

  constructor(deps: TapSessionDeps) {
    this.#deps = deps
    this.#rate = tapBudget(deps.request.maxRps, deps.clock.monotonic())
  }

  get shown(): number {
    return this.#shown
  }

  /** Events that matched, but were not shown. */
  get dropped(): number {
    return this.#dropped.rate + this.#dropped.reader + this.#dropped.elsewhere
  }

  /** Resolves when the tap has ended, for any reason. */
  async run(out: StreamOut): Promise<void> {
    const { request, replica, clock, signal, subscribe } = this.#deps
    const { filter, maxRps, forMs } = request
    const until = new Date(clock.now() + forMs).toISOString()
    const onAbort = (): void => this.#end(undefined)
    signal.addEventListener('abort', onAbort)
    if (signal.aborted) onAbort()
    const ending = setTimeout(() => this.#end('time'), forMs)
    const telling = setInterval(() => this.#tell(out), TELL_MS)
    void this.#write(out, { type: 'start', replica, until, maxRps })
    const unsubscribe = subscribe({ filter, maxRps, replica }, (events, thread) => this.#take(out, events, thread))
    void this.#relayAll(out)
    const reason = await this.#ended.promise
    unsubscribe()
    clearTimeout(ending)
    clearInterval(telling)
    signal.removeEventListener('abort', onAbort)
    if (reason === undefined) return
    void this.#write(out, { type: 'end', replica, reason, shown: this.#shown, dropped: this.dropped })
    await this.#written
  }

  #end(reason: TapEnd | undefined): void {
    this.#over = true
    this.#closing.abort()
    this.#ended.resolve(reason)
  }

  #take(out: StreamOut, events: readonly TapThreadEvent[], thread: number): Promise<void> {
    if (this.#over) return Promise.resolve()
    const { request, clock } = this.#deps
    const nowMs = clock.monotonic()
    let lines = ''
    let shown = 0
    for (const event of events) {
      if (typeof event !== 'string') this.#count(thread, event)
      else if (!this.#rate.take(nowMs)) this.#drop('rate', 1)
      else {
        lines += `${event}\n`
        shown++
        if (this.#shown + shown === request.limit) break
      }
    }
    return this.#show(out, lines, shown)
  }

  #show(out: StreamOut, lines: string, shown: number): Promise<void> {
    if (shown === 0) return Promise.resolve()
    const { limit } = this.#deps.request
    this.#shown += shown
    this.#deps.count('shown', shown)
    const written = this.#writeText(out, lines)
    if (limit > 0 && this.#shown >= limit) this.#end('limit')
    return written
  }

  async #relayAll(out: StreamOut): Promise<void> {
    try {
      const peers = (await this.#deps.peers?.()) ?? []
      await Promise.all(peers.map((peer) => this.#relay(out, peer)))
    } catch (error) {
      await this.#tellMissing(out, '(all others)', error)
    }
  }

  /** Another replica's events count like this one's: rate and limit apply to all of them together. */
  async #relay(out: StreamOut, peer: TapPeer): Promise<void> {
    try {
      for await (const line of peer.lines(this.#closing.signal)) {
        if (this.#over || line.startsWith(END)) return
        if (!line.startsWith(REQUEST)) {
          this.#dropped.elsewhere += droppedIn(line)
          await this.#writeText(out, `${line}\n`)
        } else if (this.#rate.take(this.#deps.clock.monotonic())) await this.#show(out, `${line}\n`, 1)
        else this.#drop('rate', 1)
      }
      await this.#tellMissing(out, peer.name, new Error('it has ended the stream'))
    } catch (error) {
      await this.#tellMissing(out, peer.name, error)
    }
  }

  async #tellMissing(out: StreamOut, replica: string, error: unknown): Promise<void> {
    if (!this.#over) await this.#write(out, { type: 'missing', replica, message: adminFault(error) })
  }

  #count(thread: number, now: TapCounts): void {
    const last = this.#counts.get(thread) ?? NO_COUNTS
    // Another thread has taken its place, and counts from 0.
    const before = now.seen < last.seen || now.matched < last.matched ? NO_COUNTS : last
    this.#counts.set(thread, now)
    this.#seen += now.seen - before.seen
    this.#matched += now.matched - before.matched
    this.#drop('rate', now.aboveRate - before.aboveRate)
    this.#drop('reader', now.unread - before.unread)
  }

  #drop(reason: DropReason, events: number): void {
    if (events === 0) return
    this.#dropped[reason] += events
    this.#deps.count(reason, events)
  }

  /** A reader that does not take pending data gets nothing more. */
  #tell(out: StreamOut): void {
    this.#ticks++
    if (this.#waiting > 0 || this.#over) return
    const { replica } = this.#deps
    for (const reason of ['rate', 'reader'] as const) {
      const count = this.#dropped[reason] - this.#told[reason]
      if (count > 0) void this.#write(out, { type: 'dropped', replica, count, reason })
      this.#told[reason] += count
    }
    if (this.#ticks % PROGRESS_EVERY !== 0) return
    void this.#write(out, { type: 'progress', replica, seen: this.#seen, matched: this.#matched })
  }

  #write(out: StreamOut, line: TapLine): Promise<void> {
    return this.#writeText(out, `${safeJson(line)}\n`)
  }

  /** In order; what waits is bounded by the threads' credit. Never rejects: without a reader the tap is over. */
  #writeText(out: StreamOut, text: string): Promise<void> {
    this.#waiting++
    this.#written = this.#written
      .then(() => out.write(text))
      .catch(() => this.#end(undefined))
      .finally(() => this.#waiting--)
    return this.#written
  }
}

/** Number of dropped events reported by another replica's line. */
function droppedIn(line: string): number {
  return Number(/^\{"type":"dropped".*"count":(\d{1,15})[,}]/.exec(line)?.[1] ?? 0)
}
