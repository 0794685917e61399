// The memory of answers that wait for their clients, of one thread: charged to whoever asked, also when upstream has sent all of them and their
// requests are over. What has come cannot be refused; so whoever has a share gets no more from upstream and no new requests, and while it
// still grows, the answers that have made no progress for longest are given up.

import { type Charge, LEAST_WATER_BYTES, type QueueMeter, type Stream } from '../../api/stream.ts'
import type { SharedResource } from './shared-resource.ts'
import type { Shares } from './shares.ts'

/** Whose answer it is. */
export interface AnswerOwner {
  readonly client: Stream
  readonly charge: Charge
  /** The client gets no more of it: its stream is reset. */
  dropAnswer(): void
}

/** Part of the reserve that answers may fill, since what else is charged can be refused. */
const RESERVE_PART = 2
/** Part of the capacity that short answers may take without being charged. */
export const SHORT_PART = 32
/** Short answers that are looked at together, at least. */
const LEAST_SHORT = 64

/** One source, while answers to it wait. */
interface Source {
  readonly charge: Charge
  bytes: number
  /** Those that are worth giving up first, and the rest; of each the one without progress for longest comes first. */
  readonly long: Set<WaitingAnswer>
  readonly short: Set<WaitingAnswer>
}

export class WaitingAnswers {
  readonly #shared: SharedResource
  readonly #soon: (call: () => void) => void
  readonly #sources = new Map<string, Source>()
  /** Short answers that waited when they were given to their clients. */
  readonly #short: AnswerOwner[] = []
  #shortBytes = 0
  /** How many of them were waiting when they were looked at last. */
  #stayed = 0
  #looksSoon = false
  #looking = false

  /** @param soon calls it when the turn of the event loop is over */
  constructor(shared: SharedResource, soon: (call: () => void) => void) {
    this.#shared = shared
    this.#soon = soon
  }

  /**
   * Something of the answer waits in its stream: its memory is charged from here on, as long as something does. Of short ones that is so for a
   * moment whenever many are written at once, and nothing needs to be charged; only where many stay do all that stay count.
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

  /** Takes constant time for each that was added, since about half of them are new. */
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

  /** Whatever its size. */
  charge(owner: AnswerOwner): void {
    const answer = new WaitingAnswer(this, owner)
    owner.client.meter = answer
    answer.onQueued(memoryOf(owner.client))
  }

  /** Whether `charge` has its share, and nothing is left: it gets only what it takes. */
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

  /** `bytes` more or less wait for `source`. */
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
    // Mostly it is left until the turn is over, when some have been written. What is not charged has a part of the reserve, too.
    if (held > capacity + reserve - capacity / SHORT_PART) this.#look()
    else if (held > mostOf(shares)) this.#lookSoon()
  }

  // === who loses something ===

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

/** One answer; it stays with its stream, which may wait and be taken many times. */
class WaitingAnswer implements QueueMeter {
  readonly #all: WaitingAnswers
  readonly #owner: AnswerOwner
  /** While something waits. */
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
    // When its client has taken something, it is behind the others again.
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
