// Endless list and watch, like client-go's reflector: a list in pages, then a watch from its resourceVersion, resumed where it broke; and a new list
// if the history has a gap (410) or nothing arrived for long.

import { setTimeout as sleep, setImmediate as yieldToEventLoop } from 'node:timers/promises'
import type { JsonObject } from '../../kit/api/json/json-object.ts'
import { recordOf } from '../../kit/api/json/object-shape.ts'
import type { Logger } from '../../kit/api/ports.ts'
import { errorMessage } from '../../kit/api/validation/error-message.ts'
import type { FollowChoice, FollowEvents, Following, ObjectList, RawObjects, Transform } from '../api/object-client.ts'
import { StatusError } from '../api/status.ts'
import { AnswerBytes } from './answers/thread-answers.ts'
import { statusIn } from './client-errors.ts'
import { FollowedBytes, OutgrownError } from './followed-bytes.ts'
import { identity, listAll, type ResourcePages } from './list.ts'
import { BadWatchError, type WatchEvent, WatchLines } from './watch-lines.ts'

export interface FollowTiming {
  /** Wait after the first failure, milliseconds; doubles with each consecutive one. Default 200. */
  readonly firstDelayMs: number
  /** Default 10,000. */
  readonly longestDelayMs: number
  /** `onState(false)` after being disconnected for this long. Default 5,000. */
  readonly awayMs: number
  /** A watch without any data for this long is dead: bookmarks arrive every minute. Default 90,000. */
  readonly silenceMs: number
  /** Minimum timeoutSeconds that a watch requests, in milliseconds; at most twice that. Default 240 s. */
  readonly watchSeconds: number
  /** In [0, 1). */
  random(): number
}

export interface FollowOptions extends Partial<FollowTiming>, Pick<FollowChoice, 'raw' | 'keepsPlace'> {
  readonly log: Logger
  /** For the log. */
  readonly resource: string
  /** Applied to each object as soon as its page or event is read; the result is kept. Default: identity. */
  readonly transform?: Transform
}

/**
 * Bytes of a watch read per turn of the event loop. A server can send faster than its events are handled: without a pause, everything the socket has
 * received would be processed in one turn.
 */
const SLICE_BYTES = 32 * 1024
/** A watch that ends sooner, without an event, counts as a failure: the server must not be called in a tight loop. */
const SHORT_WATCH_MS = 1_000

export function followResource(pages: ResourcePages, events: FollowEvents, options: FollowOptions): Following {
  const follower = new Follower(pages, events, options)
  const running = follower.run()
  return {
    stop: async () => {
      follower.stop()
      await running
    },
  }
}

class Follower {
  readonly #pages: ResourcePages
  readonly #events: FollowEvents
  readonly #log: Logger
  readonly #resource: string
  readonly #timing: FollowTiming
  readonly #transform: Transform
  readonly #raw: RawObjects | undefined
  readonly #keepsPlace: boolean
  readonly #stopping = new AbortController()
  /** resourceVersion of the last event or list; '' = a list is due. */
  #version = ''
  /** The last reported state. */
  #reported: { readonly current: boolean; readonly message: string } | undefined
  #fault = ''
  #away: NodeJS.Timeout | undefined
  /** Whether the watch that just ended brought an event or lasted. */
  #lively = false
  readonly #kept: FollowedBytes

  constructor(
    pages: ResourcePages,
    events: FollowEvents,
    { log, resource, transform, raw, keepsPlace, ...timing }: FollowOptions,
  ) {
    this.#pages = pages
    this.#kept = new FollowedBytes(pages.charge)
    this.#events = events
    this.#log = log
    this.#resource = resource
    this.#transform = transform ?? identity
    this.#raw = raw
    this.#keepsPlace = keepsPlace ?? false
    this.#timing = {
      firstDelayMs: timing.firstDelayMs ?? 200,
      longestDelayMs: timing.longestDelayMs ?? 10_000,
      awayMs: timing.awayMs ?? 5_000,
      silenceMs: timing.silenceMs ?? 90_000,
      watchSeconds: timing.watchSeconds ?? 240,
      random: timing.random ?? Math.random,
    }
  }

  /** Never rejects. */
  async run(): Promise<void> {
    let failures = 0
    while (!this.#stopping.signal.aborted) {
      let waitMs = 0
      this.#lively = false
      try {
        if (this.#version === '') await this.#untilStopped((signal) => this.#list(signal))
        await this.#untilStopped((signal) => this.#watch(signal))
        if (!this.#lively) this.#onFailure('every watch ends at once')
      } catch (error) {
        if (this.#stopping.signal.aborted) break
        waitMs = this.#failed(error)
      }
      failures = this.#lively ? 0 : failures + 1
      waitMs = Math.max(waitMs, this.#delay(failures))
      if (waitMs > 0) await this.#pause(waitMs)
    }
    clearTimeout(this.#away)
    this.#kept.drop()
  }

  stop(): void {
    clearTimeout(this.#away)
    this.#stopping.abort()
  }

  /** Each attempt has its own signal: listeners on a shared one would accumulate over the follower's life. */
  async #untilStopped(attempt: (signal: AbortSignal) => Promise<void>): Promise<void> {
    const end = new AbortController()
    const abort = (): void => end.abort()
    this.#stopping.signal.addEventListener('abort', abort, { once: true })
    try {
      await attempt(end.signal)
    } finally {
      this.#stopping.signal.removeEventListener('abort', abort)
      end.abort()
    }
  }

  async #list(signal: AbortSignal): Promise<void> {
    const { items, resourceVersion } = await this.#listWithin(signal)
    if (this.#stopping.signal.aborted) return
    this.#deliver(() => {
      this.#events.onReplace(items)
      // An event on which the listener threw does not count as delivered.
      if (resourceVersion !== '') this.#events.onVersion?.(resourceVersion)
    })
    this.#version = resourceVersion
    // The timer restarts: if the watch cannot be opened either, the list brings the changes.
    clearTimeout(this.#away)
    this.#away = undefined
  }

  async #listWithin(signal: AbortSignal): Promise<ObjectList> {
    let isWhole = false
    try {
      const list = await listAll(this.#pages, {
        signal,
        transform: this.#transform,
        raw: this.#raw,
        memory: this.#kept,
        onPage: (objects, first) => this.#deliver(() => this.#events.onPage?.(objects, first)),
      })
      isWhole = true
      return list
    } finally {
      this.#kept.end(isWhole)
    }
  }

  async #watch(signal: AbortSignal): Promise<void> {
    const { watchSeconds, silenceMs, random } = this.#timing
    const query = {
      watch: '1',
      allowWatchBookmarks: 'true',
      resourceVersion: this.#version,
      timeoutSeconds: String(Math.ceil(watchSeconds * (1 + random()))),
    }
    const body = await this.#pages.watch(query, silenceMs, signal)
    const since = performance.now()
    // Too late to resume where the last one ended.
    if (this.#version === '') {
      this.#lively = true
      return
    }
    this.#reached()
    const lines = new WatchLines(new AnswerBytes(this.#pages.charge))
    try {
      for await (const chunk of body) {
        for (let at = 0; at < chunk.length; at += SLICE_BYTES) {
          for (const event of lines.push(chunk.subarray(at, at + SLICE_BYTES))) this.#take(event)
          await yieldToEventLoop()
          if (this.#stopping.signal.aborted) return
        }
      }
    } finally {
      lines.drop()
    }
    if (performance.now() - since >= SHORT_WATCH_MS) this.#lively = true
  }

  #take({ type, object, bytes }: WatchEvent): void {
    if (this.#stopping.signal.aborted) return
    if (type === 'ERROR') throw watchError(object)
    const metadata = recordOf(object['metadata'])
    const { resourceVersion } = metadata
    if (typeof resourceVersion !== 'string' || resourceVersion === '') {
      throw new Error(`the watch sent ${JSON.stringify(type.slice(0, 20))} without a resourceVersion`)
    }
    const isChange = type === 'ADDED' || type === 'MODIFIED' || type === 'DELETED'
    const kept = isChange ? this.#transform(object, this.#raw?.objectOf(bytes)) : object
    if (type === 'BOOKMARK') this.#raw?.onBookmark(bytes)
    if (isChange && type !== 'DELETED') this.#kept.add(kept)
    this.#deliver(() => {
      if (isChange) this.#events.onChange(type, kept)
      this.#events.onVersion?.(resourceVersion)
    })
    this.#version = resourceVersion
    this.#lively = true
  }

  /** How long the server wants us to wait. */
  #failed(error: unknown): number {
    const message = errorMessage(error)
    if (error instanceof StatusError && error.code === 410) {
      this.#log.info('the history of a watch has a gap; listing again', { resource: this.#resource })
      this.#version = ''
      return 0
    }
    // Resuming the watch would bring it again; a list has the current objects.
    if (error instanceof BadWatchError) this.#version = ''
    if (error instanceof OutgrownError) {
      // A list tells the actual size. A server that sends endless objects must not be listed in a tight loop.
      this.#version = ''
      this.#lively = false
    }
    // A refusal is a response that waiting will not change.
    const refused = error instanceof StatusError && error.code < 500 && error.code !== 429
    this.#log.debug('a watch failed', { resource: this.#resource, why: message })
    if (refused) {
      this.#version = ''
      clearTimeout(this.#away)
      this.#away = undefined
      this.#report(false, message)
    } else this.#onFailure(message)
    const seconds = error instanceof StatusError ? (error.status.details?.retryAfterSeconds ?? 0) : 0
    return Math.min(seconds * 1000, this.#timing.longestDelayMs)
  }

  #delay(failures: number): number {
    if (failures === 0) return 0
    const { firstDelayMs, longestDelayMs, random } = this.#timing
    const full = Math.min(longestDelayMs, firstDelayMs * 2 ** Math.min(failures - 1, 20))
    return full * (0.5 + random() / 2)
  }

  async #pause(ms: number): Promise<void> {
    await sleep(ms, undefined, { signal: this.#stopping.signal, ref: true }).catch(() => undefined)
  }

  #reached(): void {
    clearTimeout(this.#away)
    this.#away = undefined
    this.#report(true, '')
  }

  #onFailure(why: string): void {
    this.#fault = why
    if (this.#reported?.current === false) this.#report(false, why)
    if (this.#away !== undefined) return
    this.#away = setTimeout(() => {
      // Only a list tells when we have caught up; by then the history is mostly gone anyway.
      if (!this.#keepsPlace) this.#version = ''
      this.#report(false, this.#fault)
    }, this.#timing.awayMs)
  }

  #report(current: boolean, message: string): void {
    if (this.#reported?.current === current && this.#reported.message === message) return
    if (this.#stopping.signal.aborted) return
    this.#reported = { current, message }
    this.#deliver(() => this.#events.onState(current, message))
  }

  /** A listener's error must not end the follower. */
  #deliver(call: () => void): void {
    try {
      call()
    } catch (error) {
      this.#log.error('a change of objects could not be handled', { resource: this.#resource, error })
    }
  }
}

function watchError(object: JsonObject): Error {
  const status = statusIn(object)
  return status === undefined ? new Error('the watch failed') : new StatusError({ ...status, code: status.code ?? 500 })
}
