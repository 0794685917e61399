// Memory of answers that wait for slow clients, per thread: charged to the caller, even after upstream has sent everything and the requests
// are over. Received bytes can't be refused; so a caller at its share gets no more from upstream and no new requests, and while the backlog
// still grows, the answers without progress for longest are dropped.

import { type Charge, LEAST_WATER_BYTES, type QueueMeter, type Stream } from '../../api/stream.ts'
import type { SharedResource } from './shared-resource.ts'
import type { Shares } from './shares.ts'

/** The owner of an answer. */
export interface AnswerOwner {
  readonly client: Stream
  readonly charge: Charge
  /** Drops the answer: the client's stream is reset. */
  dropAnswer(): void
}

/** Part of the reserve that answers may fill; other charges can be refused, these can't. */
const RESERVE_PART = 2
/** Part of the capacity that short answers may take uncharged. */
export const SHORT_PART = 32
/** Minimum number of short answers examined together. */
const LEAST_SHORT = 64

/** One source with waiting answers. */
interface Source {
  readonly charge: Charge
  bytes: number
  /** Answers to drop first, and the rest; in each, the one without progress for longest comes first. */
  readonly long: Set<WaitingAnswer>
  readonly short: Set<WaitingAnswer>
}

export class WaitingAnswers {
  readonly #shared: SharedResource
  readonly #soon: (call: () => void) => void
  readonly #sources = new Map<string, Source>()
  /** Short answers that were waiting when handed to their clients. */
  readonly #short: AnswerOwner[] = []
  #shortBytes = 0
  /** How many of them still waited at the last look. */
  #stayed = 0
  #looksSoon = false
  #looking = false

  /** @param soon runs its argument after the current turn of the event loop */
  constructor(shared: SharedResource, soon: (call: () => void) => void) {
    this.#shared = shared
    this.#soon = soon
  }

  /**
   * Bytes of the answer wait in its stream: charged from now on, while any do. Short answers wait for a moment whenever many are written at
   * once, and are not charged for that; only when many stay do all that stay count.
   */
  add(owner: AnswerOwner): void {
    const { client } = owner
    if (this.#shared.known.capacity === 0 || client.meter !== undefined) return
    if (client.queued >= LEAST_WATER_BYTES) {
      this.charge(owner)
      return
    }
    this.#short.push(owner)
    this.#shortBytes += memoryOf(client)
    const most = this.#shared.known.capacity / SHORT_PART
    if (this.#shortBytes > most || this.#short.length > 2 * this.#stayed + LEAST_SHORT) this.#lookAtShort(most)
  }

  /** Amortized constant time per added answer, since about half of them are new. */
  #lookAtShort(most: number): void {
    const short = this.#short
    let stayed = 0
    let bytes = 0
    for (const one of short) {
      const { client } = one
      if (client.queued === 0 || client.meter !== undefined) continue
      short[stayed++] = one
      bytes += memoryOf(client)
    }
    short.length = stayed
    if (bytes > most / 2) {
      for (const one of short.splice(0)) if (one.client.meter === undefined) this.charge(one)
    }
    this.#stayed = short.length
    this.#shortBytes = short.length > 0 ? bytes : 0
  }

  /** Charges the answer, whatever its size. */
  charge(owner: AnswerOwner): void {
    const answer = new WaitingAnswer(this, owner)
    owner.client.meter = answer
    answer.onQueued(memoryOf(owner.client))
  }

  /** Whether `charge` is at its share and nothing is left: it gets only what it drains. */
  isOver(charge: Charge): boolean {
    return this.#shared.of(charge).isOver(charge.source, charge.weight)
  }

  // === called by the answers ===

  sourceOf(charge: Charge): Source {
    let source = this.#sources.get(charge.source)
    if (source === undefined) {
      source = { charge, bytes: 0, long: new Set(), short: new Set() }
      this.#sources.set(charge.source, source)
    }
    return source
  }

  /** `bytes` more (or fewer) wait for `source`. */
  changed(source: Source, bytes: number): void {
    const { charge } = source
    const shares = this.#shared.of(charge)
    source.bytes += bytes
    if (bytes < 0) {
      shares.give(charge.source, -bytes)
      if (source.long.size + source.short.size === 0) this.#sources.delete(charge.source)
      return
    }
    shares.charge(charge.source, charge.weight, bytes)
    const { held, capacity, reserve } = shares
    // Usually deferred to the end of the turn, when some have been written. Uncharged answers also get a part of the reserve.
    if (held > capacity + reserve - capacity / SHORT_PART) this.#look()
    else if (held > mostOf(shares)) this.#lookSoon()
  }

  // === evicting answers ===

  #lookSoon(): void {
    if (this.#looksSoon) return
    this.#looksSoon = true
    this.#soon(() => {
      this.#looksSoon = false
      this.#look()
    })
  }

  #look(): void {
    if (this.#looking) return
    this.#looking = true
    this.#giveUp(true)
    this.#giveUp(false)
    this.#looking = false
  }

  #giveUp(known: boolean): void {
    const shares = known ? this.#shared.known : this.#shared.unknown
    while (shares.held > mostOf(shares)) {
      const most = this.#mostAboveShare(known, shares)
      if (most === undefined) return
      for (const answer of most.long.size > 0 ? most.long : most.short) {
        answer.giveUp()
        if (shares.held <= mostOf(shares) || !isAboveShare(most, shares)) break
      }
    }
  }

  #mostAboveShare(known: boolean, shares: Shares): Source | undefined {
    let most: Source | undefined
    let largest = 0
    for (const source of this.#sources.values()) {
      const level = source.bytes / source.charge.weight
      if (source.charge.known !== known || level <= largest || !isAboveShare(source, shares)) continue
      most = source
      largest = level
    }
    return most
  }
}

/** The meter of one answer; it stays with its stream, which may start and stop waiting many times. */
class WaitingAnswer implements QueueMeter {
  readonly #all: WaitingAnswers
  readonly #owner: AnswerOwner
  /** Set while bytes wait. */
  #source: Source | undefined = undefined
  #among: Set<WaitingAnswer> | undefined = undefined
  #bytes = 0

  constructor(all: WaitingAnswers, owner: AnswerOwner) {
    this.#all = all
    this.#owner = owner
  }

  onQueued(bytes: number): void {
    const change = bytes - this.#bytes
    if (change === 0) return
    this.#source ??= this.#all.sourceOf(this.#owner.charge)
    const source = this.#source
    const among = bytes >= LEAST_WATER_BYTES ? source.long : source.short
    // Once its client has read something, it goes behind the others again.
    if (change < 0 || among !== this.#among) {
      this.#among?.delete(this)
      this.#among = bytes > 0 ? among.add(this) : undefined
    }
    if (bytes === 0) this.#source = undefined
    this.#bytes = bytes
    this.#all.changed(source, change)
  }

  giveUp(): void {
    this.#owner.dropAnswer()
    this.onQueued(0)
  }
}

function memoryOf(stream: Stream): number {
  return stream.memory ?? stream.queued
}

function mostOf({ capacity, reserve }: Shares): number {
  return capacity + Math.floor(reserve / RESERVE_PART)
}

function isAboveShare({ charge }: Source, shares: Shares): boolean {
  return shares.heldBy(charge.source) > shares.shareOf(charge.source, charge.weight)
}
