// Deletes one pod of a collection, as the caller: a DELETE of the collection narrowed down to the pod's name, with
// its uid as a precondition and the client's own selectors, so that upstream's authorizers see the same request.

import {
  headersTooLargeMessage,
  noEndpointMessage,
  upstreamFailedMessage,
} from '../../gateway/core/policy/traffic-messages.ts'
import { type KubeAnswer, kubeCall } from '../../gateway/io/upstream/kube-call.ts'
import { callerFields } from '../../gateway/request/calls/upstream-reader.ts'
import { selectEndpoint } from '../../gateway/request/exchange/attempt.ts'
import type { Permit } from '../../gateway/request/exchange/decision.ts'
import type { Endpoint } from '../../gateway/state/endpoints.ts'
import type { HeaderList } from '../../kit/api/stream.ts'
import { type Refusal, refuse } from '../../kit/core/refusal/refusal.ts'
import { OBJECT } from '../../kube/core/answers/answer-limits.ts'
import {
  AnswerTooLargeError,
  HeadTooLargeError,
  KubeCallError,
  NoRoomError,
} from '../../kube/core/answers/call-errors.ts'
import type { PodFacts, Reservation } from '../api/protection.ts'
import { meansNotDeleted } from '../core/ledger/verdicts.ts'
import { type AskedDeletion, type Deletion, podsPath } from './deletion.ts'

/** kube-apiserver's --request-timeout. */
const TIMEOUT_MS = 60_000
const MAX_TRIES = 3

/** A pod of the collection to be deleted. */
export interface CollectionItem {
  readonly pod: PodFacts
  /** Require the resourceVersion that was evaluated. */
  readonly unchanged: boolean
  /** Released when nothing was deleted. */
  readonly reservation: Reservation | undefined
  /** Monotonic milliseconds. */
  readonly evaluatedAtMs: number
}

export type DeletionOutcome =
  | { readonly kind: 'done'; readonly answer: KubeAnswer }
  /** Deleted by another client in the meantime, or replaced. */
  | { readonly kind: 'gone' }
  /** The uid has changed or, if `unchanged` is required, the resourceVersion. */
  | { readonly kind: 'changed'; readonly answer: KubeAnswer }
  | { readonly kind: 'refused'; readonly answer: KubeAnswer }
  /** Nothing was sent: no server takes it, or its head exceeds upstream's limit. */
  | { readonly kind: 'unsent'; readonly refusal: Refusal }
  /** The deletion may or may not have happened. */
  | { readonly kind: 'unknown'; readonly refusal: Refusal }

export class CollectionSender {
  readonly #deletion: Deletion
  readonly #permit: Permit
  readonly #asked: AskedDeletion
  readonly #fields: HeaderList

  constructor(deletion: Deletion, permit: Permit, asked: AskedDeletion) {
    this.#deletion = deletion
    this.#permit = permit
    this.#asked = asked
    const { head, record } = deletion.exchange
    this.#fields = ['audit-id', record.auditId, ...callerFields(head)]
  }

  /** Releases the pod's reservation when nothing was deleted. */
  async send(item: CollectionItem): Promise<DeletionOutcome> {
    const outcome = await this.#send(item)
    if (isNothingDeleted(outcome) && item.reservation !== undefined) this.#deletion.gate.release([item.reservation])
    return outcome
  }

  async #send({ pod, unchanged }: CollectionItem): Promise<DeletionOutcome> {
    const { exchange } = this.#deletion
    const permit = this.#permit
    const { name } = permit.cluster
    const tried: string[] = []
    while (tried.length < MAX_TRIES) {
      const endpoint = selectEndpoint(exchange.gw, permit, exchange.gw.clock.monotonic(), tried)
      if (endpoint === undefined) break
      tried.push(endpoint.url)
      exchange.record.endpoint = endpoint.url
      exchange.record.attempts++
      endpoint.started()
      try {
        const body = this.#asked.bound(pod.uid, unchanged ? pod.resourceVersion : '')
        const answer = await this.#call(endpoint, pod.name, body)
        if (answer === undefined) continue
        permit.live.endpoints.onSuccess(endpoint, exchange.gw.clock.monotonic(), answer.status)
        return this.#outcomeOf(answer, unchanged)
      } catch (error) {
        if (!(error instanceof KubeCallError)) throw error
        if (error instanceof HeadTooLargeError)
          return { kind: 'unsent', refusal: refuse('headers-too-large', headersTooLargeMessage(name, error.maxBytes)) }
        if (error instanceof AnswerTooLargeError || error instanceof NoRoomError)
          return { kind: 'done', answer: UNTOLD }
        if (!error.unprocessed)
          return { kind: 'unknown', refusal: refuse('upstream-failed', upstreamFailedMessage(name)) }
      } finally {
        endpoint.ended()
      }
    }
    return { kind: 'unsent', refusal: refuse('no-endpoint', noEndpointMessage(name)) }
  }

  async #call({ url, authority }: Endpoint, name: string, body: Buffer): Promise<KubeAnswer | undefined> {
    const { exchange } = this.#deletion
    const { cluster, caller, info } = this.#permit
    const connections = exchange.gw.upstreams.get(cluster.name, url)
    if (connections === undefined) return undefined
    const fieldSelector = info.fieldSelector === '' ? '' : `${info.fieldSelector},`
    let path = `${podsPath(info.namespace)}?fieldSelector=${encodeURIComponent(`${fieldSelector}metadata.name=${name}`)}`
    if (info.labelSelector !== '') path += `&labelSelector=${encodeURIComponent(info.labelSelector)}`
    return await kubeCall(connections, {
      method: 'DELETE',
      path,
      authority,
      token: '',
      credentials: caller.credentials(cluster.client),
      fields: this.#fields,
      body,
      contentType: this.#asked.contentType,
      timeoutMs: TIMEOUT_MS,
      limits: OBJECT,
      payer: exchange.charge,
    })
  }

  #outcomeOf(answer: KubeAnswer, unchanged: boolean): DeletionOutcome {
    const { status } = answer
    const { uid, resourceVersion } = this.#asked
    if (status < 400) return { kind: 'done', answer }
    if (status === 404) return { kind: 'gone' }
    if (status === 409 && resourceVersion === '') {
      if (unchanged) return { kind: 'changed', answer }
      // The uid has changed, unless the client itself set it as a precondition.
      if (uid === '') return { kind: 'gone' }
    }
    return { kind: 'refused', answer }
  }
}

/** Deleted, but upstream's answer was too large to keep. */
const UNTOLD: KubeAnswer = { status: 200, body: '' }

function isNothingDeleted(outcome: DeletionOutcome): boolean {
  return outcome.kind === 'unsent' || (outcome.kind === 'refused' && meansNotDeleted(outcome.answer.status))
}
