// The body of one request: held until its destination is known, or read whole if the decision depends on
// it; then passed on, and kept for a retry. The client's window is given back as its bytes are taken.

import { ChunkQueue } from '../../../http2/chunk-queue.ts'
import { HIGH_WATER_BYTES, type Stream } from '../../../kit/api/stream.ts'
import type { Refusal } from '../../../kit/core/refusal/refusal.ts'
import { BodyPieces } from '../../../kube/core/answers/body-pieces.ts'
import type { AuditTrail } from '../../api/audit-trail.ts'
import type { RequestRecord } from '../../api/request-record.ts'
import type { BufferedBytes } from './buffered-bytes.ts'

/** Body kept until upstream answers, so that a request that upstream never processed can be retried elsewhere. */
const REPLAY_LIMIT_BYTES = 256 * 1024

export class RequestBody {
  /** The complete body as the client sent it, once it was read whole. */
  original: Buffer | undefined = undefined
  /** Why reading it whole failed. */
  unread: Refusal | undefined = undefined
  readonly #client: Stream
  readonly #memory: BufferedBytes
  readonly #record: RequestRecord
  /** Kept for the first send or a retry. */
  #kept: ChunkQueue | undefined = undefined
  #keptBytes = 0
  #replayable = true
  /** The complete body, if it is read before anything is sent. */
  #whole: WholeBody | undefined = undefined
  #wholeBytes = 0
  /** It was read or sent. Until then, no window is replenished for kept bytes. */
  #wanted = false
  /** Bytes taken from the client but not yet by upstream: window still to be given back. */
  #owed = 0

  constructor(client: Stream, record: RequestRecord, memory: BufferedBytes) {
    this.#client = client
    this.#memory = memory
    this.#record = record
  }

  get keptBytes(): number {
    return this.#keptBytes
  }

  /** Whether the body permits sending the request again. */
  get replayable(): boolean {
    return this.#replayable
  }

  /** Keeps what arrives before the body is needed. */
  keep(chunk: Buffer): void {
    if (this.unread !== undefined) this.#client.credit(chunk.length)
    else if (this.#memory.take(chunk.length)) this.#push(chunk)
    else {
      this.#client.credit(chunk.length)
      this.overfull()
    }
  }

  #push(chunk: Buffer): void {
    this.#keptBytes += chunk.length
    this.#kept ??= new ChunkQueue()
    this.#kept.push(chunk)
  }

  /** Out of memory: drops what has arrived and whatever follows. */
  overfull(): void {
    const { unread } = this
    this.unread = unread ?? this.#memory.refusal()
    if (!this.#wanted && this.#keptBytes > 0) this.#client.credit(this.#keptBytes)
    this.#drop()
    this.#whole?.finish('overfull')
  }

  /** Drops what is kept. */
  #drop(): void {
    this.#memory.give(this.#keptBytes)
    this.#keptBytes = 0
    this.#kept?.clear()
    this.#kept = undefined
  }

  /** Copies what arrived before audit recording was decided. */
  showKept(trail: AuditTrail): void {
    for (const piece of this.#kept?.pieces() ?? []) trail.requestBody(piece)
  }

  // === read whole ===

  /** Collects the body in `whole`, including what has already arrived. */
  readInto(whole: WholeBody): void {
    this.#wanted = true
    this.#whole = whole
    const kept = this.#kept
    const bytes = this.#keptBytes
    this.#kept = undefined
    this.#keptBytes = 0
    this.#memory.give(bytes)
    for (const piece of kept?.pieces() ?? []) this.read(piece)
    kept?.clear()
  }

  read(chunk: Buffer): void {
    if (chunk.length === 0) return
    this.#record.requestBytes += chunk.length
    this.#client.credit(chunk.length)
    if (this.unread !== undefined) return
    if (!this.#memory.take(chunk.length)) {
      this.overfull()
      return
    }
    this.#wholeBytes += chunk.length
    this.#whole?.add(chunk)
  }

  /** Stops reading. */
  finish(end: BodyEnd): void {
    this.#whole?.finish(end)
  }

  /** Sends the body that was read as a whole. */
  setRead(body: Buffer): void {
    this.original = body
    this.replace(body)
  }

  /** Replaces a body that was read. */
  replace(body: Buffer): void {
    this.#drop()
    this.#memory.give(this.#wholeBytes)
    this.#wholeBytes = 0
    if (body.length > 0) this.keep(body)
  }

  // === to upstream ===

  /** Sends what is kept, and keeps it. */
  sendKept(stream: Stream): void {
    if (this.#kept !== undefined) for (const piece of this.#kept.pieces()) stream.body(piece, false)
  }

  /** Bytes that arrived before there was an endpoint have been sent, and now count as passed on. */
  keptSent(stream: Stream | undefined): void {
    if (this.#keptBytes === 0) return
    // Read or sent before: already counted then.
    if (!this.#wanted) {
      this.#record.requestBytes += this.#keptBytes
      this.#taken(this.#keptBytes, stream)
    }
    this.#wanted = true
    if (this.#keptBytes > REPLAY_LIMIT_BYTES) this.forget()
  }

  /** @param answered by upstream: the request will not be retried */
  passOn(chunk: Buffer, end: boolean, stream: Stream | undefined, answered: boolean): void {
    this.#wanted = true
    this.#record.requestBytes += chunk.length
    if (!answered && this.#replayable) {
      // If there is no room to keep it, it can't be retried.
      if (this.#keptBytes + chunk.length <= REPLAY_LIMIT_BYTES && this.#memory.take(chunk.length)) this.#push(chunk)
      else this.forget()
    }
    stream?.body(chunk, end)
    this.#taken(chunk.length, stream)
  }

  /** Window for bytes still queued in upstream's stream is given back when it drains (`upstreamDrained`). */
  #taken(bytes: number, stream: Stream | undefined): void {
    if (stream !== undefined && stream.queued >= HIGH_WATER_BYTES) this.#owed += bytes
    else this.#client.credit(bytes)
  }

  /** Upstream has taken all but `queued` bytes: the client may send more. */
  upstreamDrained(queued: number): void {
    const bytes = creditFor(this.#owed, queued, HIGH_WATER_BYTES)
    if (bytes === 0) return
    this.#owed -= bytes
    this.#client.credit(bytes)
  }

  /** The request can't be sent again. */
  forget(): void {
    this.#replayable = false
    this.#drop()
  }

  // === the end ===

  /** Releases everything held. */
  end(): void {
    const held = this.#wanted ? this.#owed : this.#keptBytes
    this.#whole?.discard()
    this.#drop()
    this.#memory.end()
    if (held > 0) this.#client.credit(held)
  }
}

export type BodyEnd = 'complete' | 'too-large' | 'too-late' | 'overfull' | 'gone'

/** Collects a body until it is complete, too large or too late. */
export class WholeBody {
  /** Never rejects. */
  readonly ended: Promise<BodyEnd>
  readonly #limit: number
  readonly #deadline: NodeJS.Timeout
  #resolve: ((end: BodyEnd) => void) | undefined
  readonly #pieces: BodyPieces = new BodyPieces()
  #bytes = 0

  constructor(limit: number, timeoutMs: number) {
    this.#limit = limit
    this.ended = new Promise((resolve) => {
      this.#resolve = resolve
    })
    this.#deadline = setTimeout(() => this.finish('too-late'), timeoutMs)
  }

  /** Copies the chunk; ignores anything after the end. */
  add(chunk: Buffer): void {
    if (this.#resolve === undefined) return
    this.#bytes += chunk.length
    if (this.#bytes > this.#limit) this.finish('too-large')
    else this.#pieces.add(chunk)
  }

  /** The first end counts. */
  finish(end: BodyEnd): void {
    if (this.#resolve === undefined) return
    clearTimeout(this.#deadline)
    this.#resolve(end)
    this.#resolve = undefined
    if (end !== 'complete') this.discard()
  }

  /** The complete body; may be taken once. */
  take(): Buffer {
    return Buffer.concat(this.#pieces.take())
  }

  /** Releases the memory: to be called when the request has ended. */
  discard(): void {
    this.finish('gone')
    this.#pieces.clear()
  }
}

/**
 * How much of what is owed to give back, with `queued` bytes still to be sent: the room below `water`. All at once would
 * bring in as much again at once, ahead of everyone else on the connection.
 */
export function creditFor(owed: number, queued: number, water: number): number {
  return queued === 0 ? owed : Math.min(owed, Math.max(0, water - queued))
}
