// One direction of an upgraded connection: like `from.pipe(to)`, in slices of the thread's time (io/scheduling). What a socket reads in one turn of the
// event loop is gathered, and written at its end.

import type { Duplex, Writable } from 'node:stream'
import { LARGE_SLAB_BYTES, releaseLargeSlab, takeLargeSlab } from '../../../http2/slabs.ts'
import type { Charge } from '../../../kit/api/stream.ts'
import type { Account, Waiter } from '../../core/thread-time/accounts.ts'
import { PacedReader, threadScheduler } from '../scheduling/thread-scheduler.ts'
import { listenSharedRead } from './shared-read.ts'
import { LINGER_BYTES } from './socket-close.ts'
import { type TurnOutput, writeAtTurnEnd } from './turn-outputs.ts'

/** Bytes read per turn while other sources use the thread. */
const READ_BYTES = 64 * 1024
/** Maximum pending writes: each takes some 200 bytes besides its data, which may arrive byte by byte. */
const MAX_WRITES = 512
/** What is no longer, and alone, is written at once: more is likely to follow in the same turn if it is longer, or if a write is pending. */
const SHORT_BYTES = 2048
const NOTHING = Buffer.alloc(0)

/** Sees what passes, before it does. */
interface PipeTap {
  /** @returns false = it must not pass: the pipe is being ended */
  see(chunk: Buffer): boolean
  /** Nothing more may pass until `goOn`. */
  isFull(): boolean
}

export class FairPipe extends PacedReader implements TurnOutput, Waiter {
  readonly #from: Duplex
  readonly #to: Writable
  readonly #charge: Charge
  readonly #onWaiting: (() => void) | undefined
  readonly #onWritten: () => void
  /** Chunks are valid only during their event. */
  readonly #isShared: boolean
  readonly #tap: PipeTap | undefined
  #account: Account | undefined
  /** Input that waits: no more than `from` had buffered when it was paused. */
  #kept: Buffer[] = []
  /** Gathered in this turn, and how much of it is filled. */
  #gathered: Buffer = NOTHING
  #filled = 0
  /** It is written at the end of this turn. */
  #isDue = false
  /** `to` accepts no more for now. */
  #isFull = false
  #inQueue = false
  #ended = false
  /** Pending writes. */
  #writes = 0
  /** Bytes received after `to` had closed. */
  #discarded = 0
  /** Bytes received since its last reading turn. */
  #read = 0
  /** Bytes forwarded. */
  bytes = 0

  /**
   * @param charge the source that opened the connection; pays for both directions
   * @param onWaiting called when `to` stops accepting data, and when it accepts again. Default: ignored
   * @param tap default: none
   */
  constructor(from: Duplex, to: Writable, charge: Charge, onWaiting?: () => void, tap?: PipeTap) {
    super()
    this.#from = from
    this.#to = to
    this.#charge = charge
    this.#onWaiting = onWaiting
    this.#tap = tap
    this.#onWritten = () => {
      if (--this.#writes === 0 && this.#isFull && !to.writableNeedDrain) this.#onDrained()
    }
    this.#isShared = listenSharedRead(from, (chunk) => this.#onData(chunk))
    from.on('end', () => {
      this.#ended = true
      if (this.#kept.length === 0) this.#end()
    })
    to.on('drain', () => this.#onDrained())
    to.once('close', () => this.#drop())
    from.resume()
  }

  /** Forwards what was received before the pipe. */
  begin(first: Buffer): void {
    if (first.length === 0) return
    const nowMs = performance.now()
    this.#write(first, this.#accountNow(nowMs), nowMs)
  }

  /** The tap is no longer full. */
  goOn(): void {
    if (this.#isFull && !this.#to.writableNeedDrain && this.#writes < MAX_WRITES) this.#onDrained()
  }

  #onDrained(): void {
    if (this.#tap?.isFull() === true) return
    this.#isFull = false
    this.#onWaiting?.()
    if (this.#kept.length > 0) this.#enqueue()
    else threadScheduler.readOn(this.#charge, this)
  }

  #onData(chunk: Buffer): void {
    this.#read += chunk.length
    // A paused socket goes on with what it has read, no more than one read: to keep it would cost a buffer for each chunk.
    if (this.#kept.length === 0 && (!this.#isFull || (this.#isShared && this.#tap?.isFull() !== true))) {
      const nowMs = performance.now()
      const account = this.#accountNow(nowMs)
      if (threadScheduler.begin(account, nowMs)) {
        this.#write(chunk, account, nowMs)
        threadScheduler.charge(account, nowMs, performance.now())
        const isLong = this.#read >= READ_BYTES && threadScheduler.hasOthers
        if (this.#isFull || isLong) this.#from.pause()
        if (isLong && !this.#isFull) threadScheduler.readOn(this.#charge, this)
        return
      }
    }
    this.#kept.push(this.#isShared ? Buffer.from(chunk) : chunk)
    threadScheduler.keptBytes += chunk.length
    this.#from.pause()
    if (!this.#isFull) this.#enqueue()
  }

  /** Called by the thread's scheduler. */
  work(untilMs: number): boolean {
    let nowMs = performance.now()
    const account = this.#accountNow(nowMs)
    while (!this.#isFull && nowMs < untilMs) {
      const chunk = this.#take()
      if (chunk === undefined) break
      nowMs = this.#write(chunk, account, nowMs)
    }
    if (this.#kept.length > 0 && !this.#isFull) return true
    this.#inQueue = false
    if (this.#kept.length > 0) return false
    if (this.#ended) this.#end()
    else if (!this.#isFull) threadScheduler.readOn(this.#charge, this)
    return false
  }

  /** Called when it is its turn to read. */
  resume(): void {
    this.#read = 0
    if (this.#kept.length === 0 && !this.#isFull) this.#from.resume()
  }

  /** `from` has closed: forwards the rest at once. */
  flush(): void {
    const nowMs = performance.now()
    const account = this.#accountNow(nowMs)
    for (let chunk = this.#take(); chunk !== undefined; chunk = this.#take()) this.#write(chunk, account, nowMs)
    this.#sendGathered()
  }

  #end(): void {
    this.#sendGathered()
    this.#to.end()
  }

  #enqueue(): void {
    if (this.#inQueue) return
    this.#inQueue = true
    threadScheduler.wait(this.#accountNow(performance.now()), this)
  }

  #take(): Buffer | undefined {
    const chunk = this.#kept.shift()
    if (chunk !== undefined) threadScheduler.keptBytes -= chunk.length
    return chunk
  }

  /** @returns when it ended */
  #write(chunk: Buffer, account: Account, sinceMs: number): number {
    const to = this.#to
    if (to.destroyed || to.writableEnded) {
      // The peer may have sent this before it knew; if it continues, stop reading.
      this.#discarded += chunk.length
      if (this.#discarded > LINGER_BYTES) {
        this.#isFull = true
        this.#from.pause()
      }
    } else if (this.#tap === undefined || this.#tap.see(chunk)) {
      this.bytes += chunk.length
      if (this.#isShared) this.#gather(chunk)
      else this.#send(chunk, this.#onWritten)
      if (this.#tap?.isFull() === true) this.#becomeFull()
    }
    const nowMs = performance.now()
    // Charged for the read, which cannot be measured and costs about as much. The caller charges the write.
    threadScheduler.charge(account, sinceMs, nowMs)
    return nowMs
  }

  #gather(chunk: Buffer): void {
    const { length } = chunk
    if (length <= SHORT_BYTES && this.#filled === 0 && this.#to.writableLength === 0) {
      this.#send(Buffer.from(chunk), this.#onWritten)
      return
    }
    for (let at = 0; at < length; ) {
      if (this.#filled === 0) this.#gathered = takeLargeSlab()
      const size = Math.min(length - at, LARGE_SLAB_BYTES - this.#filled)
      chunk.copy(this.#gathered, this.#filled, at, at + size)
      this.#filled += size
      at += size
      if (this.#filled === LARGE_SLAB_BYTES) this.#sendGathered()
    }
    if (this.#isDue || this.#filled === 0) return
    this.#isDue = true
    writeAtTurnEnd(this, this.#account?.over === true)
  }

  writeOut(): void {
    this.#isDue = false
    this.#sendGathered()
  }

  #sendGathered(): void {
    const slab = this.#gathered
    const filled = this.#filled
    if (filled === 0) return
    if (this.#to.destroyed || this.#to.writableEnded) {
      this.#drop()
      return
    }
    this.#gathered = NOTHING
    this.#filled = 0
    // What has to wait must not take much more memory than it is counted with.
    if (filled <= (this.#to.writableLength > 0 ? LARGE_SLAB_BYTES / 2 : SHORT_BYTES)) {
      this.#send(Buffer.from(slab.subarray(0, filled)), this.#onWritten)
      releaseLargeSlab(slab)
      return
    }
    this.#send(slab.subarray(0, filled), (error) => {
      // After an error the system may still use it.
      if (!error) releaseLargeSlab(slab)
      this.#onWritten()
    })
  }

  /** Charges the writing, and the reading: it cannot be measured and costs about as much. */
  written(sinceMs: number, nowMs: number): void {
    const account = this.#accountNow(nowMs)
    threadScheduler.charge(account, sinceMs, nowMs)
    threadScheduler.charge(account, sinceMs, nowMs)
  }

  #send(chunk: Buffer, onWritten: (error?: Error | null) => void): void {
    this.#writes++
    if (!this.#to.write(chunk, onWritten) || this.#writes >= MAX_WRITES) this.#becomeFull()
  }

  #becomeFull(): void {
    if (this.#isFull) return
    this.#isFull = true
    this.#from.pause()
    this.#onWaiting?.()
  }

  #drop(): void {
    while (this.#take() !== undefined);
    releaseLargeSlab(this.#gathered)
    this.#gathered = NOTHING
    this.#filled = 0
  }

  #accountNow(nowMs: number): Account {
    const account = this.#account
    if (account?.open === true) return account
    this.#account = threadScheduler.accountOf(this.#charge, nowMs)
    return this.#account
  }
}
