// Endless list and watch, like client-go's reflector: a list in pages, then a watch from its resourceVersion, resumed where it broke; and a new list
// if the history has a gap (410) or nothing arrived for long.

import { setTimeout as sleep, setImmediate as yieldToEventLoop } from 'node:timers/promises'
import type { JsonObject } from '../../kit/api/json/json-object.ts'
import { recordOf, textOf } from '../../kit/api/json/object-shape.ts'
import type { Logger } from '../../kit/api/ports.ts'
import { errorMessage } from '../../kit/api/validation/error-message.ts'
import type {
  FollowChoice,
  FollowEvents,
  Following,
  ObjectList,
  RawEvent,
  RawObjects,
  Transform,
} from '../api/object-client.ts'
import { StatusError } from '../api/status.ts'
import { AnswerBytes } from './answers/thread-answers.ts'
import { statusIn } from './client-errors.ts'
import { EventFrames } from './event-frames.ts'
import { FollowedBytes, OutgrownError } from './followed-bytes.ts'
import { identity, listAll, type ResourcePages } from './list.ts'
import { BadWatchError, EventLines, parseEvent } from './watch-lines.ts'

export interface FollowTiming {
  /** Wait after the first failure, milliseconds; doubles with each consecutive one. Default 200. */
  readonly firstDelayMs: number
  /** Default 10,000; 2,000 for a follower that keeps its place. */
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

export interface FollowOptions extends Partial<FollowTiming>, Pick<FollowChoice, 'raw' | 'keepsPlace' | 'from'> {
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
const LONGEST_DELAY_MS = 10_000
/** Followers that keep their place answer other clients, who wait for the watch to resume. */
const PLACE_KEPT_DELAY_MS = 2_000
/** Maximum wait for a server's Retry-After. */
const LONGEST_RETRY_AFTER_MS = 10_000
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
  /** Memory of parsed objects; with `raw`, the follower accounts for its own. */
  readonly #kept: FollowedBytes

  constructor(
    pages: ResourcePages,
    events: FollowEvents,
    { log, resource, transform, raw, keepsPlace, from, ...timing }: FollowOptions,
  ) {
    this.#pages = pages
    this.#kept = new FollowedBytes(pages.charge)
    this.#events = events
    this.#log = log
    this.#resource = resource
    this.#transform = transform ?? identity
    this.#raw = raw
    this.#keepsPlace = keepsPlace ?? false
    this.#version = from ?? ''
    this.#timing = {
      firstDelayMs: timing.firstDelayMs ?? 200,
      longestDelayMs: timing.longestDelayMs ?? (keepsPlace ? PLACE_KEPT_DELAY_MS : LONGEST_DELAY_MS),
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
        const isResumed = this.#version !== ''
        if (!isResumed) await this.#untilStopped((signal) => this.#list(signal))
        await this.#untilStopped((signal) => this.#watch(signal, isResumed))
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
    // No watch can begin after it: without a failure the server would be listed in a tight loop.
    if (resourceVersion === '') throw new Error('the list has no resourceVersion')
    this.#deliver(() => {
      this.#events.onReplace(items)
      // An event on which the listener threw does not count as delivered.
      this.#events.onVersion?.(resourceVersion)
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
        ...(this.#raw === undefined && { memory: this.#kept }),
        onPage: (objects, first) => this.#deliver(() => this.#events.onPage?.(objects, first)),
      })
      isWhole = true
      return list
    } finally {
      this.#kept.end(isWhole)
    }
  }

  async #watch(signal: AbortSignal, isResumed: boolean): Promise<void> {
    const { watchSeconds, silenceMs, random } = this.#timing
    const query = {
      watch: '1',
      allowWatchBookmarks: 'true',
      resourceVersion: this.#version,
      timeoutSeconds: String(Math.ceil(watchSeconds * (1 + random()))),
    }
    const body = await this.#pages.watch(query, silenceMs, signal, this.#raw?.encoding)
    const since = performance.now()
    // Too late to resume where the last one ended.
    if (this.#version === '') {
      this.#lively = true
      return
    }
    this.#reached()
    if (isResumed) this.#deliver(() => this.#events.onResumed?.())
    const memory = new AnswerBytes(this.#pages.charge)
    const arriving = this.#raw?.encoding === 'protobuf' ? new EventFrames(memory) : new EventLines(memory)
    try {
      for await (const chunk of body) {
        for (let at = 0; at < chunk.length; at += SLICE_BYTES) {
          for (const bytes of arriving.push(chunk.subarray(at, at + SLICE_BYTES))) this.#take(bytes)
          await yieldToEventLoop()
          if (this.#stopping.signal.aborted) return
        }
      }
    } finally {
      arriving.drop()
    }
    if (performance.now() - since >= SHORT_WATCH_MS) this.#lively = true
  }

  #take(bytes: Buffer): void {
    if (this.#stopping.signal.aborted) return
    const { type, object, resourceVersion } = this.#read(bytes)
    if (type === 'ERROR') throw watchError(object)
    if (resourceVersion === '')
      throw new Error(`the watch sent ${JSON.stringify(type.slice(0, 20))} without a resourceVersion`)
    if (this.#raw === undefined && isChange(type) && type !== 'DELETED') this.#kept.add(object)
    this.#deliver(() => {
      if (isChange(type)) this.#events.onChange(type, object)
      this.#events.onVersion?.(resourceVersion)
    })
    this.#version = resourceVersion
    this.#lively = true
  }

  /** @throws {BadWatchError} */
  #read(bytes: Buffer): RawEvent {
    if (this.#raw !== undefined) {
      try {
        return this.#raw.event(bytes)
      } catch (error) {
        throw new BadWatchError(errorMessage(error))
      }
    }
    const { type, object } = parseEvent(bytes)
    const resourceVersion = textOf(recordOf(object['metadata'])['resourceVersion'])
    return { type, resourceVersion, object: isChange(type) ? this.#transform(object) : object }
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
      this.#report(false, message, error.code)
    } else this.#onFailure(message)
    const seconds = error instanceof StatusError ? (error.status.details?.retryAfterSeconds ?? 0) : 0
    return Math.min(seconds * 1000, LONGEST_RETRY_AFTER_MS)
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

  #report(current: boolean, message: string, code = 0): void {
    if (this.#reported?.current === current && this.#reported.message === message) return
    if (this.#stopping.signal.aborted) return
    this.#reported = { current, message }
    this.#deliver(() => this.#events.onState(current, message, code))
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

function isChange(type: string): type is 'ADDED' | 'MODIFIED' | 'DELETED' {
  return type === 'ADDED' || type === 'MODIFIED' || type === 'DELETED'
}

function watchError(object: JsonObject): Error {
  const status = statusIn(object)
  return status === undefined ? new Error('the watch failed') : new StatusError({ ...status, code: status.code ?? 500 })
}
