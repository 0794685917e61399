// The single response to the deletion of a collection: the list of deleted pods, or why one could not be deleted.

import {
  headersTooLargeMessage,
  noEndpointMessage,
  upstreamFailedMessage,
} from '../../gateway/core/policy/traffic-messages.ts'
import type { KubeAnswer } from '../../gateway/io/upstream/kube-call.ts'
import { keepAnswer } from '../../gateway/request/exchange/kept-answers.ts'
import { respond, respondWith } from '../../gateway/request/exchange/respond.ts'
import { isRecord } from '../../kit/api/json/object-shape.ts'
import { type Refusal, type RefusalCause, refuse } from '../../kit/core/refusal/refusal.ts'
import { KubeCallError } from '../../kube/core/answers/call-errors.ts'
import { type Outcome, toldFields } from './collection-sender.ts'
import type { Deletion } from './deletion.ts'

/** Causes per Status; the message gives the total. */
const MAX_CAUSES = 100
/** Characters of the list in the response, which is assembled in one turn of the event loop. Beyond it a Status reports success. */
const MAX_LIST_LENGTH = 16 * 1024 * 1024

export class CollectionAnswer {
  readonly #deletion: Deletion
  readonly #metadata: Readonly<Record<string, unknown>>
  readonly #total: number
  #done = 0
  /** JSON of the pods from upstream's answers; undefined when they can't be listed. */
  #items: string[] | undefined = []
  #length = 0
  #refused = 0
  #refusal: Refusal | undefined
  readonly #causes: RefusalCause[] = []
  #failure: Refusal | KubeAnswer | undefined

  constructor(deletion: Deletion, metadata: Readonly<Record<string, unknown>> = {}, total = 0) {
    this.#deletion = deletion
    this.#metadata = metadata
    this.#total = total
  }

  /** Stop sending. */
  get failed(): boolean {
    return this.#failure !== undefined
  }

  /** A pod is not deleted: the first reason becomes that of the response. */
  refused(name: string, refusal: Refusal): void {
    this.#refused++
    this.#refusal ??= refusal
    if (this.#causes.length >= MAX_CAUSES) return
    const [cause] = refusal.causes
    const reason = cause?.reason ?? refusal.refused
    this.#causes.push({ reason, message: `pod "${name}": ${refusal.message}`, field: '' })
  }

  outcome(outcome: Outcome): void {
    const { cluster } = this.#deletion.exchange.record
    switch (outcome.kind) {
      case 'done':
        this.#done++
        this.#take(outcome.answer.body)
        return
      case 'gone':
        this.#done++
        return
      case 'changed':
      case 'refused':
        this.#failure ??= outcome.answer
        return
      case 'unknown':
        this.#failure ??= refuse('upstream-failed', upstreamFailedMessage(cluster))
        return
      case 'no-endpoint':
        this.#failure ??= refuse('no-endpoint', noEndpointMessage(cluster))
        return
      case 'head-too-large':
        this.#failure ??= refuse('headers-too-large', headersTooLargeMessage(cluster, outcome.maxBytes))
    }
  }

  #take(body: string): void {
    if (this.#items === undefined) return
    const items = itemsOf(body)
    this.#length += body.length
    if (items === undefined || this.#length > MAX_LIST_LENGTH || !this.#keep(body.length)) this.#items = undefined
    else for (const item of items) this.#items.push(item)
  }

  #keep(bytes: number): boolean {
    try {
      keepAnswer(this.#deletion.exchange, bytes)
      return true
    } catch (error) {
      if (error instanceof KubeCallError) return false
      throw error
    }
  }

  /** Relays upstream's answer unchanged. */
  relay(answer: KubeAnswer): void {
    respondWith(this.#deletion.exchange, answer.status, toldFields(answer), Buffer.from(answer.body), this.#warnings)
  }

  send(): void {
    const { exchange } = this.#deletion
    const failure = this.#failure
    if (failure !== undefined && 'refused' in failure) respond(exchange, failure)
    else if (failure !== undefined) this.relay(failure)
    else if (this.#refusal !== undefined) respond(exchange, this.#partly(this.#refusal))
    else respondWith(exchange, 200, ['content-type', 'application/json'], this.#all(), this.#warnings)
  }

  get #warnings(): readonly string[] {
    return this.#deletion.decision.warnings
  }

  #partly(first: Refusal): Refusal {
    const refusal = this.#causes.length === 1 && this.#total === 1 ? first.message : this.#causes[0]?.message
    return {
      ...first,
      message: `${this.#done} of ${this.#total} pods were deleted, ${this.#refused} must stay: ${refusal}`,
      causes: this.#causes,
      object: { kind: 'pods', name: '' },
    }
  }

  #all(): Buffer {
    if (this.#items === undefined) {
      const details = { kind: 'pods' }
      return Buffer.from(
        JSON.stringify({ kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Success', details, code: 200 }),
      )
    }
    return Buffer.from(
      `{"kind":"PodList","apiVersion":"v1","metadata":${JSON.stringify(this.#metadata)},"items":[${this.#items.join(',')}]}`,
    )
  }
}

/** undefined if it is not a list. */
function itemsOf(body: string): string[] | undefined {
  try {
    const list: unknown = JSON.parse(body)
    if (!isRecord(list) || !Array.isArray(list['items'])) return undefined
    return (list['items'] as readonly unknown[]).map((item) => JSON.stringify(item))
  } catch {
    return undefined
  }
}
