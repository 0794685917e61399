// DELETE of a collection of pods: the gateway lists them, evaluates them in batches, and deletes them one by one as the caller, with
// collection requests for one name each, so that the caller needs no other right. As in kube-apiserver
// (apiserver/pkg/registry/generic/registry/store.go, DeleteCollection), completed deletions are not undone.

import { refuseRevoked } from '../../gateway/core/admission/steps.ts'
import { headerValue } from '../../gateway/core/request/hop-headers.ts'
import { queryOf, queryValues } from '../../gateway/core/request/write-query.ts'
import type { KubeAnswer } from '../../gateway/io/upstream/kube-call.ts'
import { keepAnswer } from '../../gateway/request/calls/upstream-reader.ts'
import { refuseEndedSession } from '../../gateway/request/ended-session.ts'
import type { Permit } from '../../gateway/request/exchange/decision.ts'
import { respond, respondWith } from '../../gateway/request/exchange/respond.ts'
import { isRecord } from '../../kit/api/json/object-shape.ts'
import type { HeaderList } from '../../kit/api/stream.ts'
import { type Refusal, type RefusalCause, refuse } from '../../kit/core/refusal/refusal.ts'
import { KubeCallError } from '../../kube/core/answers/call-errors.ts'
import type { PodFacts, ProtectionGate } from '../api/protection.ts'
import { isGuarded } from '../core/quota/pod-facts.ts'
import { type CollectionItem, CollectionSender, type DeletionOutcome } from './collection-sender.ts'
import {
  type AskedDeletion,
  bindBody,
  type Deletion,
  findPod,
  follow,
  followUnread,
  listPods,
  NO_POD_UID,
  passUnreviewed,
  reviewDeletions,
} from './deletion.ts'

/** Causes per Status; the message gives the total. */
const MAX_CAUSES = 100
/** Characters of the list in the response, which is assembled in one turn of the event loop. Beyond it a Status reports success. */
const MAX_LIST_LENGTH = 16 * 1024 * 1024

/** Pods per evaluation. */
const BATCH = 100
/**
 * A pod evaluated longer ago is evaluated again before its deletion is sent: the ledger forgets a deletion that has not happened after
 * --protection-reservation-timeout, and upstream may take a minute of that.
 */
const EVALUATED_FOR_MS = 15_000
/** Concurrent deletions; kube-apiserver's --delete-collection-workers is 1. */
const AT_ONCE = 8
/** Evaluations per pod, if it keeps changing. */
const MAX_ROUNDS = 3

const PAGING: ReadonlySet<string> = new Set(['continue', 'limit'])

export async function protectCollection(deletion: Deletion, asked: AskedDeletion): Promise<Refusal | undefined> {
  const { exchange } = deletion
  const options = queryValues(queryOf(exchange.target), PAGING)
  // A page of an old snapshot doesn't show the current state of the pods.
  if ((options.get('continue')?.[0] ?? '') !== '')
    return refuse('bad-request', 'continue is not supported where deletions of pods are protected: omit it')
  const limit = limitOf(options.get('limit')?.[0] ?? '')
  if (limit === undefined) return refuse('bad-request', 'limit is not a number')
  const found = await listPods(deletion, limit)
  if (exchange.gone) return undefined
  if (found.kind !== 'found') {
    const answered = found.kind === 'unknown' ? found.answered : undefined
    // The client's selectors or options are invalid.
    if (answered?.status === 400 || answered?.status === 422) {
      relay(deletion, answered)
      return undefined
    }
    return passUnreviewed(deletion, asked, found)
  }
  const { items: pods, metadata } = found.value
  // Nothing to evaluate: let upstream answer. The client did not ask to delete pods created meanwhile.
  if (pods.length === 0) {
    bindBody(deletion, asked, NO_POD_UID, '')
    return undefined
  }
  const answer = new CollectionAnswer(deletion, metadata, pods.length)
  deletion.decision.deliver = (permit) => deleteAll(deletion, permit, asked, pods, answer)
  return undefined
}

/** '' and 0 = no limit; undefined if it is not a number. */
function limitOf(text: string): number | undefined {
  if (text === '') return 0
  return /^[0-9]{1,15}$/.test(text) ? Number(text) : undefined
}

/** Pods that may be deleted, in list order. */
async function evaluate(
  deletion: Deletion,
  asked: AskedDeletion,
  pods: readonly PodFacts[],
  answer: CollectionAnswer,
): Promise<CollectionItem[]> {
  const { settings } = deletion
  // Leave it to upstream to refuse what no longer meets the client's preconditions.
  const evaluated = pods.filter((pod) => {
    return !pod.terminating && isGuarded(settings, pod.labels) && (asked.uid === '' || asked.uid === pod.uid)
  })
  const verdicts = evaluated.length === 0 ? [] : await reviewDeletions(deletion, asked, evaluated)
  const byUid = new Map(evaluated.map((pod, i) => [pod.uid, verdicts[i]]))
  const items: CollectionItem[] = []
  const evaluatedAtMs = deletion.exchange.gw.clock.monotonic()
  for (const pod of pods) {
    const verdict = byUid.get(pod.uid)
    const refused = verdict === undefined ? undefined : follow(deletion, pod.name, verdict)
    if (refused !== undefined) answer.refused(pod.name, refused)
    else items.push({ pod, unchanged: verdict?.freePass === true, reservation: verdict?.reservation, evaluatedAtMs })
  }
  return items
}

/** Evaluates the pod again if it has changed, or if its evaluation is too old. */
async function deleteOne(
  deletion: Deletion,
  asked: AskedDeletion,
  listed: CollectionItem,
  sender: CollectionSender,
  answer: CollectionAnswer,
): Promise<void> {
  const { clock } = deletion.exchange.gw
  let item: CollectionItem | undefined = listed
  if (clock.monotonic() - item.evaluatedAtMs > EVALUATED_FOR_MS) {
    release(deletion.gate, [item])
    item = await evaluateAgain(deletion, asked, item.pod, answer)
  }
  for (let round = 1; item !== undefined; round++) {
    const outcome = await sender.send(item)
    if (outcome.kind !== 'changed' || round === MAX_ROUNDS) {
      answer.outcome(outcome)
      return
    }
    item = await evaluateAgain(deletion, asked, item.pod, answer)
  }
}

/** @returns undefined if it must not be deleted; `answer` has the reason */
async function evaluateAgain(
  deletion: Deletion,
  asked: AskedDeletion,
  pod: PodFacts,
  answer: CollectionAnswer,
): Promise<CollectionItem | undefined> {
  const found = await findPod(deletion, pod.name)
  if (found.kind === 'absent' || (found.kind === 'found' && found.value.uid !== pod.uid)) {
    answer.outcome({ kind: 'gone' })
    return undefined
  }
  if (found.kind === 'found') return (await evaluate(deletion, asked, [found.value], answer))[0]
  const refused = followUnread(deletion, pod.name, found)
  const evaluatedAtMs = deletion.exchange.gw.clock.monotonic()
  if (refused === undefined) return { pod, unchanged: false, reservation: undefined, evaluatedAtMs }
  answer.refused(pod.name, refused)
  return undefined
}

async function deleteAll(
  deletion: Deletion,
  permit: Permit,
  asked: AskedDeletion,
  pods: readonly PodFacts[],
  answer: CollectionAnswer,
): Promise<Refusal | undefined> {
  const { exchange, gate } = deletion
  const { live, requester } = permit
  // Aborted during evaluation.
  const aborted = (): boolean => exchange.phase === 'over'
  const ended = (): boolean => aborted() || exchange.gone || answer.failed
  const sender = new CollectionSender(deletion, permit, asked)
  for (let from = 0; from < pods.length && !ended(); from += BATCH) {
    const items = await evaluate(deletion, asked, pods.slice(from, from + BATCH), answer)
    const revoked =
      refuseRevoked(live.compiled.authentication.revoked, requester) ?? refuseEndedSession(exchange.gw, requester)
    if (revoked !== undefined) {
      release(gate, items)
      return revoked
    }
    if (from === 0 && !aborted()) exchange.gw.running.add(exchange)
    let next = 0
    const work = async (): Promise<void> => {
      while (!ended()) {
        const item = items[next++]
        if (item === undefined) return
        await deleteOne(deletion, asked, item, sender, answer)
      }
    }
    await Promise.all(Array.from({ length: Math.min(AT_ONCE, items.length) }, work))
    // Never sent.
    release(gate, items.slice(next))
  }
  if (!aborted()) answer.send()
  return undefined
}

function release(gate: ProtectionGate, items: readonly CollectionItem[]): void {
  const reservations = items.flatMap(({ reservation }) => reservation ?? [])
  if (reservations.length > 0) gate.release(reservations)
}

/** The single response to the deletion of a collection: the list of deleted pods, or why one could not be deleted. */
class CollectionAnswer {
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

  constructor(deletion: Deletion, metadata: Readonly<Record<string, unknown>>, total: number) {
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

  outcome(outcome: DeletionOutcome): void {
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
      case 'unsent':
      case 'unknown':
        this.#failure ??= outcome.refusal
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

  send(): void {
    const { exchange, decision } = this.#deletion
    const failure = this.#failure
    if (failure !== undefined && 'refused' in failure) respond(exchange, failure)
    else if (failure !== undefined) relay(this.#deletion, failure)
    else if (this.#refusal !== undefined) respond(exchange, this.#partly(this.#refusal))
    else respondWith(exchange, 200, ['content-type', 'application/json'], this.#all(), decision.warnings)
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

/** Relays upstream's answer, with those of its fields that mean something to the client. */
function relay({ exchange, decision }: Deletion, { status, body, head = [] }: KubeAnswer): void {
  const told: HeaderList = ['content-type', headerValue(head, 'content-type') ?? 'application/json']
  const retryAfter = headerValue(head, 'retry-after')
  if (retryAfter !== undefined) told.push('retry-after', retryAfter)
  respondWith(exchange, status, told, Buffer.from(body), decision.warnings)
}
