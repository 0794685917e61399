// An answer that is held until it is whole, so that its endpoint may die in the middle and another one is asked: the client has
// seen nothing of it yet. Only small ones are held, and only so many bytes of them in a thread.

import type { RequestRecord } from '../api/ports/request-record.ts'
import type { HeaderList, Stream } from '../api/ports/stream.ts'
import { headerValue } from '../core/request/hop-headers.ts'
import { ChunkQueue } from '../http2/chunk-queue.ts'

/** Body of an answer that is held. */
export const MAX_HELD_BYTES: number = 64 * 1024
/** Such bodies of a thread, together. */
export const MAX_ALL_HELD_BYTES: number = 16 * 1024 * 1024
/** One that does not say its length may be a stream, whose reader waits for what there is of it. */
export const MAX_HELD_MS = 1000

/** Who has an answer held. */
export interface Holder {
  /** It is to be passed on from here, and held no longer. */
  heldTooLong(): void
}

/** Of this thread. */
let allHeldBytes = 0
/** Those that do not say their length, by the time at which they are passed on; in the order of that. */
const hurried = new Map<HeldAnswer, number>()
let timer: NodeJS.Timeout | undefined

/** Bytes held by all answers of this thread. */
export function heldBytes(): number {
  return allHeldBytes
}

export class HeldAnswer {
  /** As upstream sent it. */
  readonly head: HeaderList
  readonly holder: Holder
  #chunks: ChunkQueue | undefined = undefined

  /** @param nowMs monotonic */
  constructor(head: HeaderList, holder: Holder, nowMs: number) {
    this.head = head
    this.holder = holder
    if (headerValue(head, 'content-length') === undefined) hurry(this, nowMs)
  }

  /** False: it does not fit, and the answer is to be passed on from here. */
  hold(chunk: Buffer): boolean {
    const { length } = chunk
    const own = this.#chunks?.bytes ?? 0
    if (own + length > MAX_HELD_BYTES || allHeldBytes + length > MAX_ALL_HELD_BYTES) return false
    if (length === 0) return true
    this.#chunks ??= new ChunkQueue()
    this.#chunks.push(chunk)
    allHeldBytes += length
    return true
  }

  /** Gives all that is held to the client. @returns how much that is */
  passOn(client: Stream): number {
    const bytes = this.#chunks?.bytes ?? 0
    for (const piece of this.#chunks?.pieces() ?? []) client.body(piece, false)
    this.discard()
    return bytes
  }

  discard(): void {
    hurried.delete(this)
    if (this.#chunks === undefined) return
    allHeldBytes -= this.#chunks.bytes
    this.#chunks.clear()
    this.#chunks = undefined
  }
}

/** One timer for all of them. */
function hurry(held: HeldAnswer, nowMs: number): void {
  hurried.set(held, nowMs + MAX_HELD_MS)
  if (timer === undefined) timer = setTimeout(passOnOldSoon, MAX_HELD_MS, nowMs + MAX_HELD_MS).unref()
}

/** When all that has come by now was read: a thread that was held up must not take that for slowness of the other side. */
function passOnOldSoon(nowMs: number): void {
  setImmediate(passOnOld, nowMs)
}

function passOnOld(nowMs: number): void {
  timer = undefined
  for (const [{ holder }, untilMs] of hurried) {
    if (untilMs <= nowMs) holder.heldTooLong()
    else {
      timer = setTimeout(passOnOldSoon, untilMs - nowMs, untilMs).unref()
      return
    }
  }
}

/**
 * Whether an answer to a read is held: one that says that it is short; or an object or list as kube-apiserver writes them, which
 * above 4 KiB do not say so, and come in one go all the same.
 */
export function mayBeHeld(head: HeaderList, { isResourceRequest, longRunning }: RequestRecord): boolean {
  const length = headerValue(head, 'content-length')
  // Five digits, so that nothing odd is taken for a number.
  if (length !== undefined) return /^\d{1,5}$/.test(length) && Number(length) <= MAX_HELD_BYTES
  return isResourceRequest && !longRunning && isObject(headerValue(head, 'content-type') ?? '')
}

function isObject(contentType: string): boolean {
  return contentType.startsWith('application/json') || contentType.startsWith('application/vnd.kubernetes.protobuf')
}
