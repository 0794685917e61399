// Responses that are collected before the client sees any of them. Held: so that another endpoint can be asked if this one dies midway; only small
// ones, for a short while, within a memory limit per thread. Whole: to be changed, because a member gave it whose names are others here.

import { ChunkQueue } from '../../http2/chunk-queue.ts'
import type { HeaderList, Stream } from '../../kit/api/stream.ts'
import { BodyPieces } from '../../kube/core/answers/body-pieces.ts'
import type { AuditTrail } from '../api/audit-trail.ts'
import type { RequestRecord } from '../api/request-record.ts'
import { headerListBytes } from '../core/request/header-list.ts'
import { headerValue } from '../core/request/hop-headers.ts'
import type { AnswerChange } from './exchange/answer-change.ts'
import type { Exchange } from './exchange/exchange.ts'

/** Per response: its head, as counted by RFC 9113 section 6.5.2, and its body. */
export const MAX_HELD_BYTES: number = 64 * 1024
/** Per thread: heads, and the chunks of bodies. */
export const MAX_ALL_HELD_BYTES: number = 16 * 1024 * 1024
/** With or without a length it may be a stream, whose reader waits for each part. */
export const MAX_HELD_MS = 1000

/** Owner of a held response. */
export interface Holder {
  /** Pass the response on now; it is held no longer. */
  heldTooLong(): void
}

/** The bytes held by this thread. */
let allHeldBytes = 0
/** All held responses, ordered by deadline: a linked list, so that holding one allocates nothing else. */
let oldest: HeldAnswer | undefined
let newest: HeldAnswer | undefined
let timer: NodeJS.Timeout | undefined

/** Memory of all responses held by this thread. */
export function heldBytes(): number {
  return allHeldBytes
}

/**
 * Holds the response to a read, from its head on; undefined = passed on as it arrives. Responses are held if they declare a short
 * length, or are objects or lists from kube-apiserver, which above 4 KiB declare no length but arrive at once. Responses that may run for long (a log,
 * a proxied request) are never held: their backend, not the endpoint, decides when they continue and whether they end well.
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

/** At most five digits, so that nothing odd parses as a number. */
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
  /** Deadline for passing it on. */
  readonly untilMs: number
  /** Its neighbors among all held responses. */
  before: HeldAnswer | undefined
  after: HeldAnswer | undefined = undefined
  readonly #headBytes: number
  #chunks: ChunkQueue | undefined = undefined
  #held = true

  /** Only `holdAnswer` constructs it. */
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

  /** False: it does not fit, and the response has to be passed on now. */
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

  /** Sends everything held to the client. @returns number of bytes */
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
    // Unlink: a dead entry in the old generation would promote all later ones and their requests.
    this.before = undefined
    this.after = undefined
    allHeldBytes -= this.#headBytes + (this.#chunks?.memory ?? 0)
    this.#chunks?.clear()
    this.#chunks = undefined
  }
}

/** Reads pending input first: a thread that was blocked must not take that for a slow upstream. */
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

/** Charged to the sender. */
export class WholeAnswer {
  /** As upstream sent it. */
  readonly head: HeaderList
  readonly #exchange: Exchange
  readonly #pieces = new BodyPieces()
  #bytes = 0

  constructor(exchange: Exchange, head: HeaderList) {
    this.#exchange = exchange
    this.head = head
  }

  /** @returns whether it is collected, which depends on its length and on what waits for the sender */
  add(chunk: Buffer, maxBytes: number): 'added' | 'too-long' | 'no-memory' {
    const bytes = this.#bytes + chunk.length
    if (bytes > maxBytes) return 'too-long'
    if (!this.#exchange.takeMemory(chunk.length)) return 'no-memory'
    this.#bytes = bytes
    this.#pieces.add(chunk)
    return 'added'
  }

  take(): Buffer {
    return Buffer.concat(this.#pieces.take())
  }

  discard(): void {
    this.#pieces.clear()
    this.#exchange.giveMemory(this.#bytes)
    this.#bytes = 0
  }
}

/** @returns undefined = it cannot be read */
export function changedAnswer(change: AnswerChange, head: HeaderList, body: Buffer): Buffer | undefined {
  // Nothing else was asked for.
  if ((headerValue(head, 'content-encoding') ?? 'identity') !== 'identity') return undefined
  return change.change(Number(head[1]), headerValue(head, 'content-type') ?? '', body)
}

/** `head` for a body of another length. */
export function withLength(head: HeaderList, bytes: number): HeaderList {
  const changed: HeaderList = []
  for (let i = 0; i + 1 < head.length; i += 2) {
    const name = head[i] ?? ''
    if (name !== 'content-length') changed.push(name, head[i + 1] ?? '')
  }
  changed.push('content-length', String(bytes))
  return changed
}
