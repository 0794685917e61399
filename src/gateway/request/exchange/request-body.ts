// The body of one request on its way from the client: held until it is known where it goes, or read whole where that depends on
// it; then passed on, and kept meanwhile for sending it again. The client's window is given back as its bytes are taken.

import { ChunkQueue } from '../../../http2/chunk-queue.ts'
import { HIGH_WATER_BYTES, type Stream } from '../../../kit/api/stream.ts'
import type { Refusal } from '../../../kit/core/refusal/refusal.ts'
import type { AuditTrail } from '../../api/audit-trail.ts'
import type { RequestRecord } from '../../api/request-record.ts'
import type { BufferedBytes } from './buffered-bytes.ts'
import type { BodyEnd, WholeBody } from './whole-body.ts'
import { creditFor } from './window-credit.ts'

/** Body kept until upstream answers, so that a request which upstream never processed can be sent elsewhere. */
const REPLAY_LIMIT_BYTES = 256 * 1024

export class RequestBody {
  /** Why it was not read to its end, where that was begun. */
  unread: Refusal | undefined = undefined
  readonly #client: Stream
  readonly #memory: BufferedBytes
  readonly #record: RequestRecord
  /** What came of it, as long as it may have to be sent (again). */
  #kept: ChunkQueue | undefined = undefined
  #keptBytes = 0
  #replayable = true
  /** All of it as it came, where it is read before anything is sent. */
  #whole: WholeBody | undefined = undefined
  #wholeBytes = 0
  /** It was read or sent: until then, nothing of what is kept has been given back. */
  #wanted = false
  /** Taken from the client, not yet by upstream: bytes whose window is still to be given back. */
  #owed = 0

  constructor(client: Stream, record: RequestRecord, memory: BufferedBytes) {
    this.#client = client
    this.#memory = memory
    this.#record = record
  }

  get keptBytes(): number {
    return this.#keptBytes
  }

  /** Whether the request can be sent again as far as its body goes. */
  get replayable(): boolean {
    return this.#replayable
  }

  /** What comes before anybody wants it. */
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

  /** There is no room for it: what has come of it is dropped, and so is what comes. */
  overfull(): void {
    const { unread } = this
    this.unread = unread ?? this.#memory.refusal()
    if (!this.#wanted && this.#keptBytes > 0) this.#client.credit(this.#keptBytes)
    this.#drop()
    this.#whole?.finish('overfull')
  }

  /** Of what is kept. */
  #drop(): void {
    this.#memory.give(this.#keptBytes)
    this.#keptBytes = 0
    this.#kept?.clear()
    this.#kept = undefined
  }

  /** What came before it was known that it is recorded. */
  showKept(trail: AuditTrail): void {
    for (const piece of this.#kept?.pieces() ?? []) trail.requestBody(piece)
  }

  // === read whole ===

  /** From here on the body goes into `whole`, and so does what came before. */
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

  /** No more of it is read. */
  finish(end: BodyEnd): void {
    this.#whole?.finish(end)
  }

  /** What goes upstream in the place of a body that was read. */
  replace(body: Buffer): void {
    this.#drop()
    this.#memory.give(this.#wholeBytes)
    this.#wholeBytes = 0
    if (body.length > 0) this.keep(body)
  }

  // === to upstream ===

  /** Sends what is kept, which stays kept. */
  sendKept(stream: Stream): void {
    if (this.#kept !== undefined) for (const piece of this.#kept.pieces()) stream.body(piece, false)
  }

  /** What came before there was an endpoint was sent: from here on it counts as passed on. */
  keptSent(stream: Stream | undefined): void {
    if (this.#keptBytes === 0) return
    // Read, or sent a second time: it was counted then.
    if (!this.#wanted) {
      this.#record.requestBytes += this.#keptBytes
      this.#taken(this.#keptBytes, stream)
    }
    this.#wanted = true
    if (this.#keptBytes > REPLAY_LIMIT_BYTES) this.forget()
  }

  /** @param answered by upstream: the request will not be sent again */
  passOn(chunk: Buffer, end: boolean, stream: Stream | undefined, answered: boolean): void {
    this.#wanted = true
    this.#record.requestBytes += chunk.length
    if (!answered && this.#replayable) {
      // Where there is no room for it, it is not sent again.
      if (this.#keptBytes + chunk.length <= REPLAY_LIMIT_BYTES && this.#memory.take(chunk.length)) this.#push(chunk)
      else this.forget()
    }
    stream?.body(chunk, end)
    this.#taken(chunk.length, stream)
  }

  /** The window of what upstream's stream has not sent on is given back when it has (`upstreamDrained`). */
  #taken(bytes: number, stream: Stream | undefined): void {
    if (stream !== undefined && stream.queued >= HIGH_WATER_BYTES) this.#owed += bytes
    else this.#client.credit(bytes)
  }

  /** Upstream has taken what it had to, but for `queued` bytes: the client may send on. */
  upstreamDrained(queued: number): void {
    const bytes = creditFor(this.#owed, queued, HIGH_WATER_BYTES)
    if (bytes === 0) return
    this.#owed -= bytes
    this.#client.credit(bytes)
  }

  /** The request cannot be sent again. */
  forget(): void {
    this.#replayable = false
    this.#drop()
  }

  // === the end ===

  /** Gives back what is held. */
  end(): void {
    const held = this.#wanted ? this.#owed : this.#keptBytes
    this.#whole?.discard()
    this.#drop()
    this.#memory.end()
    if (held > 0) this.#client.credit(held)
  }
}
