// Reads what a filter needs from upstream: an object, a collection page by page, or the result of the client's write as a dry run. Calls
// are queued with those of the request's sender, who is also charged for what is kept of the answers.

import type { JsonObject } from '../../../kit/api/json/json-object.ts'
import { isRecord, recordOf, textOf } from '../../../kit/api/json/object-shape.ts'
import type { HeaderList } from '../../../kit/api/stream.ts'
import { type Refusal, type RefusalObject, refuse } from '../../../kit/core/refusal/refusal.ts'
import { OBJECT } from '../../../kube/core/answers/answer-limits.ts'
import { AnswerTooLargeError, CallLimitError, KubeCallError } from '../../../kube/core/answers/call-errors.ts'
import { leastBytes } from '../../../kube/core/answers/held-bytes.ts'
import { endOf, itemsOf, listPages, type ReadPage } from '../../../kube/core/answers/paged-list.ts'
import { AnswerBytes } from '../../../kube/io/answers/thread-answers.ts'
import type { RefusedWrite } from '../../core/policy/ending-writes.ts'
import { type RequestHead, UPSTREAM_PSEUDO } from '../../core/request/request-head.ts'
import { decodeQueryPart } from '../../core/request/request-target.ts'
import type { KubeAnswer } from '../../io/upstream/kube-call.ts'
import type { OwnCall } from '../../state/clusters.ts'
import type { Decision } from '../exchange/decision.ts'
import type { Exchange } from '../exchange/exchange.ts'
import { type CallAsGateway, callAsGateway, refusalOf } from './call-as-gateway.ts'
import type { WrittenBody } from './request-bodies.ts'

/** Timeout per call, unless the filter sets its own. */
const TIMEOUT_MS = 10_000

/** Upstream gave no usable answer. */
export interface Unknown {
  readonly kind: 'unknown'
  /** Human-readable. */
  readonly why: string
  /** Upstream's actual answer, which may be relayed if it is an error; absent = no answer. */
  readonly answered?: KubeAnswer
  /** The answer exceeds what the gateway reads. */
  readonly tooLarge?: true
}

/** Stopped by a limit of the gateway. No failure policy lifts it, since a client could bring it about. */
export interface Limited {
  readonly kind: 'limited'
  /** Human-readable. */
  readonly why: string
  /** 0 = retrying does not help. */
  readonly retryAfterSeconds: number
}

export type Outcome<T> = Read<T> | { readonly kind: 'absent' }

/** Outcome for a read that can't be absent. */
export type Read<T> = { readonly kind: 'found'; readonly value: T } | Unknown | Limited

/** Result of a write as a dry run. */
type TriedWrite = Read<JsonObject> | RefusedWrite

export interface Collection<T> {
  readonly items: readonly T[]
  /** ListMeta of the last page. */
  readonly metadata: JsonObject
}

type OneCall = Pick<CallAsGateway, 'method' | 'path' | 'credentials' | 'fields' | 'body' | 'contentType'> &
  Partial<Pick<CallAsGateway, 'limits'>>

export class UpstreamReader {
  readonly #decision: Decision
  readonly #kind: OwnCall
  readonly #timeoutMs: () => number

  /** @param timeoutMs for the next call. @throws {KubeCallError} by it, when no time is left */
  constructor(decision: Decision, kind: OwnCall, timeoutMs: () => number = () => TIMEOUT_MS) {
    this.#decision = decision
    this.#kind = kind
    this.#timeoutMs = timeoutMs
  }

  get(path: string): Promise<Outcome<JsonObject>> {
    return this.#objectOf({ method: 'GET', path })
  }

  getAsCaller(path: string): Promise<Outcome<JsonObject>> {
    return this.#objectOf({ method: 'GET', path, ...this.#asCaller() })
  }

  /** @param body a merge patch */
  patch(path: string, body: string): Promise<Outcome<JsonObject>> {
    return this.#objectOf({ method: 'PATCH', path, body, contentType: 'application/merge-patch+json' })
  }

  /**
   * @param query without a question mark; '' = none
   * @param most maximum number of objects to read
   * @param read extracts what to keep from a page's items. @throws {KubeCallError} by it, when they are not what was asked for
   */
  list<T>(
    path: string,
    query: string,
    most: number,
    read: (items: readonly unknown[]) => readonly T[],
  ): Promise<Read<Collection<T>>> {
    const { exchange } = this.#decision
    const selected = query === '' ? '' : `&${query}`
    const readPage: ReadPage<JsonObject> = async (limit, next, limits) => {
      const more = next === '' ? '' : `&continue=${encodeURIComponent(next)}`
      const page = await this.#call({ method: 'GET', path: `${path}?limit=${limit}${selected}${more}`, limits })
      return objectIn(page, LIST)
    }
    return outcomeOf(async () => {
      const items: T[] = []
      let metadata: JsonObject = {}
      for await (const page of listPages(readPage, most, endOf)) {
        const kept = read(itemsOf(page))
        keepAnswer(exchange, leastBytes(kept))
        // Not a spread: a page may have more items than a call takes arguments.
        for (const item of kept) items.push(item)
        metadata = recordOf(page['metadata'])
        if (exchange.gone) throw new KubeCallError('the client has gone')
      }
      return { kind: 'found', value: { items, metadata } }
    })
  }

  /** Tries the client's write, as the client: only upstream knows all formats, merge rules and the current object. */
  dryRun({ contentType, body }: WrittenBody): Promise<TriedWrite> {
    const { target, record } = this.#decision.exchange
    return outcomeOf(async () => {
      const answered = await this.#call({
        method: record.method === 'PUT' ? 'PUT' : 'PATCH',
        path: dryRunOf(target),
        ...this.#asCaller(),
        body,
        contentType: contentType === '' ? 'application/json' : contentType,
      })
      const { status } = answered
      if (status === 200 || status === 201) {
        const value = readObject(answered)
        if (value !== undefined) return { kind: 'found', value }
        throw new OtherAnswerError('the answer to its dry run is not an object', { status, body: '' })
      }
      const knowsNoDryRun = status === 400 && NO_DRY_RUN.test(textOf(readObject(answered)?.['message']))
      if (status >= 400 && status < 500 && !knowsNoDryRun) return { kind: 'refused', status, body: answered.body }
      throw new OtherAnswerError(`its dry run was answered with ${status}`, answered)
    })
  }

  #objectOf(call: OneCall): Promise<Outcome<JsonObject>> {
    return outcomeOf(async () => {
      const answered = await this.#call(call)
      if (answered.status === 404) return { kind: 'absent' }
      return { kind: 'found', value: objectIn(answered) }
    })
  }

  /** @throws {KubeCallError} */
  #call(call: OneCall): Promise<KubeAnswer> {
    const { exchange, live } = this.#decision
    const { gw, charge } = exchange
    return callAsGateway(gw, live, { kind: this.#kind, charge, timeoutMs: this.#timeoutMs(), limits: OBJECT, ...call })
  }

  #asCaller(): Pick<CallAsGateway, 'credentials' | 'fields'> {
    const { exchange, caller, cluster } = this.#decision
    return { credentials: caller.credentials(cluster.client), fields: callerFields(exchange.head) }
  }
}

/** Upstream answered with something other than what was asked for. */
class OtherAnswerError extends Error {
  readonly answered: KubeAnswer

  constructor(why: string, answered: KubeAnswer) {
    super(why)
    this.answered = answered
  }
}

/** @throws {OtherAnswerError} */
function objectIn(answered: KubeAnswer, what = 'an object'): JsonObject {
  const { status } = answered
  if (status !== 200) throw new OtherAnswerError(refusalOf(answered), answered)
  const object = readObject(answered)
  if (object !== undefined && (what !== LIST || Array.isArray(object['items']))) return object
  throw new OtherAnswerError(`an answer of upstream is not ${what}`, { status, body: '' })
}

const LIST = 'a list'

async function outcomeOf<T>(ask: () => Promise<T>): Promise<T | Unknown | Limited> {
  try {
    return await ask()
  } catch (error) {
    if (error instanceof OtherAnswerError) return { kind: 'unknown', why: error.message, answered: error.answered }
    if (!(error instanceof KubeCallError)) throw error
    const { message: why } = error
    if (error instanceof CallLimitError) return { kind: 'limited', why, retryAfterSeconds: error.retryAfterSeconds }
    return { kind: 'unknown', why, ...(error instanceof AnswerTooLargeError && { tooLarge: true }) }
  }
}

function readObject({ body }: KubeAnswer): JsonObject | undefined {
  try {
    const object: unknown = JSON.parse(body)
    return isRecord(object) ? object : undefined
  } catch {
    return undefined
  }
}

/** Error for a webhook that does not declare that it has no side effects (apiserver/pkg/admission/plugin/webhook/errors). */
const NO_DRY_RUN = /^admission webhook "[^"\s]+" does not support dry run$/

/**
 * Drops the client's `timeout`, by which the dry run could fail and the write itself, sent a moment later, succeed. The client may
 * have sent a dryRun, too.
 */
function dryRunOf(target: string): string {
  const at = target.indexOf('?')
  if (at < 0) return `${target}?dryRun=All`
  const kept = target
    .slice(at + 1)
    .split('&')
    .filter((pair) => decodeQueryPart(pair.split('=', 1)[0] ?? '') !== 'timeout')
  return `${target.slice(0, at)}?${[...kept, 'dryRun=All'].join('&')}`
}

/** Tells the client to retry. */
export function refuseLimited({ why, retryAfterSeconds }: Limited, rule: OwnCall, object?: RefusalObject): Refusal {
  return refuse('too-many-reviews', why, { retryAfterSeconds, rule, ...(object !== undefined && { object }) })
}

/**
 * Charges the sender for what a request keeps of answers, until it ends.
 * @throws {NoRoomError}
 * @throws {KubeCallError} when the request is over, since nothing would release the memory
 */
export function keepAnswer(exchange: Exchange, bytes: number): void {
  if (exchange.phase === 'over') throw new KubeCallError('the request has ended meanwhile')
  exchange.keptAnswers ??= new AnswerBytes(exchange.charge)
  if (exchange.keptAnswers.take(bytes)) return
  exchange.gw.events.limited('answer-bytes', exchange.charge.known)
  throw exchange.keptAnswers.full()
}

/** Set by each call itself. */
const OWN_FIELDS: ReadonlySet<string> = new Set([
  'accept',
  'accept-encoding',
  'content-type',
  'content-length',
  'expect',
  'te',
])

/** Header fields of a client's request that are copied to calls made on its behalf. */
export function callerFields({ fields }: RequestHead): HeaderList {
  const list: HeaderList = []
  for (let i = UPSTREAM_PSEUDO; i + 1 < fields.length; i += 2) {
    const name = fields[i] ?? ''
    if (!OWN_FIELDS.has(name)) list.push(name, fields[i + 1] ?? '')
  }
  return list
}
