// An answer that is held until it is whole, so that its endpoint may die in the middle and another one is asked: the client has
// seen nothing of it yet. Only small ones are held, for a short while, and only so much memory of them in a thread.

import { ChunkQueue } from '../../http2/chunk-queue.ts'
import type { HeaderList, Stream } from '../../kit/api/stream.ts'
import type { AuditTrail } from '../api/audit-trail.ts'
import type { RequestRecord } from '../api/request-record.ts'
import { headerListBytes } from '../core/request/header-list.ts'
import { headerValue } from '../core/request/hop-headers.ts'

/** An answer that is held: its head, as RFC 9113 section 6.5.2 counts it, and its body. */
export const MAX_HELD_BYTES: number = 64 * 1024
/** Memory of all of a thread: heads, and the pieces that bodies lie in. */
export const MAX_ALL_HELD_BYTES: number = 16 * 1024 * 1024
/** Whether it says its length or not, it may be a stream, whose reader waits for what there is of it. */
export const MAX_HELD_MS = 1000

/** Who has an answer held. */
export interface Holder {
  /** It is to be passed on from here, and held no longer. */
  heldTooLong(): void
}

/** Of this thread. */
let allHeldBytes = 0
/** All that are held, in the order in which they are passed on at the latest: linked, so that holding one allocates nothing else. */
let oldest: HeldAnswer | undefined
let newest: HeldAnswer | undefined
let timer: NodeJS.Timeout | undefined

/** Memory of all answers that this thread holds. */
export function heldBytes(): number {
  return allHeldBytes
}

/**
 * Holds an answer to a read, from its head on; undefined = it is passed on as it comes. Held is one that says that it is short; or
 * an object or list as kube-apiserver writes them, which above 4 KiB do not say so, and come in one go all the same. What may run
 * for long (a log, a proxied request) is not: its backend, not the endpoint, decides when it goes on and whether it ends well.
 * @param nowMs monotonic
 */
export function holdAnswer(
  head: HeaderList,
  { isResourceRequest, longRunning }: RequestRecord,
  holder: Holder,
  nowMs: number,
): HeldAnswer | undefined {
  if (longRunning) return undefined
  const length = headerValue(head, 'content-length')
  if (length === undefined) {
    if (!isResourceRequest || !isObject(headerValue(head, 'content-type') ?? '')) return undefined
  } else if (!isShortNumber(length)) return undefined
  const headBytes = headerListBytes(head)
  if (headBytes + Number(length ?? 0) > MAX_HELD_BYTES || allHeldBytes + headBytes > MAX_ALL_HELD_BYTES)
    return undefined
  return new HeldAnswer(head, headBytes, holder, nowMs)
}

/** Up to five digits, so that nothing odd is taken for a number. */
function isShortNumber(text: string): boolean {
  for (let i = 0; i < text.length; i++) {
    const c = text.charCodeAt(i)
    if (c < 0x30 || c > 0x39) return false
  }
  return text.length > 0 && text.length <= 5
}

function isObject(contentType: string): boolean {
  return contentType.startsWith('application/json') || contentType.startsWith('application/vnd.kubernetes.protobuf')
}

export class HeldAnswer {
  /** As upstream sent it. */
  readonly head: HeaderList
  readonly holder: Holder
  /** When it is passed on at the latest. */
  readonly untilMs: number
  /** Its neighbours among all that are held. */
  before: HeldAnswer | undefined
  after: HeldAnswer | undefined = undefined
  readonly #headBytes: number
  #chunks: ChunkQueue | undefined = undefined
  #held = true

  /** Only `holdAnswer` makes one. */
  constructor(head: HeaderList, headBytes: number, holder: Holder, nowMs: number) {
    this.head = head
    this.holder = holder
    this.untilMs = nowMs + MAX_HELD_MS
    this.#headBytes = headBytes
    allHeldBytes += headBytes
    this.before = newest
    if (newest === undefined) oldest = this
    else newest.after = this
    newest = this
    // One timer for all of them.
    if (timer === undefined) timer = setTimeout(passOnOldSoon, MAX_HELD_MS, this.untilMs).unref()
  }

  /** False: it does not fit, and the answer is to be passed on from here. */
  hold(chunk: Buffer): boolean {
    const { length } = chunk
    if (length === 0) return true
    if (this.#headBytes + (this.#chunks?.bytes ?? 0) + length > MAX_HELD_BYTES) return false
    this.#chunks ??= new ChunkQueue()
    const growth = this.#chunks.growth(length)
    if (allHeldBytes + growth > MAX_ALL_HELD_BYTES) return false
    this.#chunks.push(chunk)
    allHeldBytes += growth
    return true
  }

  /** Gives all that is held to the client. @returns how much that is */
  passOn(client: Stream, trail?: AuditTrail): number {
    const chunks = this.#chunks
    const bytes = chunks === undefined ? 0 : chunks.bytes
    if (chunks !== undefined) {
      for (const piece of chunks.pieces()) {
        trail?.responseBody(piece)
        client.body(piece, false)
      }
    }
    this.discard()
    return bytes
  }

  discard(): void {
    if (!this.#held) return
    this.#held = false
    if (this.before === undefined) oldest = this.after
    else this.before.after = this.after
    if (this.after === undefined) newest = this.before
    else this.after.before = this.before
    // Otherwise one that is garbage in the old generation keeps all later answers and their requests from being young garbage.
    this.before = undefined
    this.after = undefined
    allHeldBytes -= this.#headBytes + (this.#chunks?.memory ?? 0)
    this.#chunks?.clear()
    this.#chunks = undefined
  }
}

/** When all that has come by now was read: a thread that was held up must not take that for slowness of the other side. */
function passOnOldSoon(nowMs: number): void {
  setImmediate(passOnOld, nowMs)
}

function passOnOld(nowMs: number): void {
  for (let held = oldest; held !== undefined; held = oldest) {
    if (held.untilMs > nowMs) {
      timer = setTimeout(passOnOldSoon, held.untilMs - nowMs, held.untilMs).unref()
      return
    }
    held.holder.heldTooLong()
    // Never twice the same, whatever its holder did.
    held.discard()
  }
  timer = undefined
}
