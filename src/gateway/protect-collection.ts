// DELETE of a collection of pods: listed by the gateway, judged together, and then deleted one by one as the caller, by
// collection requests for one name each, so that the caller needs no other right than the one that it used. As kube-apiserver
// does it (apiserver/pkg/registry/generic/registry/store.go, DeleteCollection), what is done stays done.

import type { PodFacts } from '../api/protection.ts'
import { queryOf, queryValues } from '../core/protection/deletion-request-query.ts'
import { type Refusal, refuse } from '../core/refusal.ts'
import { refuseRevoked } from './identity.ts'
import { refuseForbidden } from './protect-access.ts'
import { findPod, listPods } from './protect-call.ts'
import { CollectionAnswer } from './protect-collection-answer.ts'
import { type CollectionItem, CollectionSender } from './protect-collection-sender.ts'
import {
  type Asked,
  type Deletion,
  FORWARD,
  isGuarded,
  keepBody,
  type Protected,
  requestOf,
} from './protect-deletion.ts'
import { errorVerdict, follow } from './protect-verdict.ts'

/** Deleted at a time: kube-apiserver's --delete-collection-workers is 1. */
const AT_ONCE = 8
/** How often a pod is judged that changes again and again. */
const MAX_ROUNDS = 3

export async function protectCollection(deletion: Deletion, asked: Asked): Promise<Protected | Refusal> {
  const { exchange, live, caller, info, protection } = deletion
  const { gw } = exchange
  const forbidden = await refuseForbidden(gw, live, caller.user, info)
  if (forbidden !== undefined) return forbidden
  const query = queryOf(exchange.target)
  // Pages of a past state say nothing of how the pods are now.
  if ((queryValues(query, 'continue')[0] ?? '') !== '')
    return refuse('bad-request', 'continue is not supported where deletions of pods are protected: leave it away')
  const limit = limitOf(queryValues(query, 'limit')[0] ?? '')
  if (limit === undefined) return refuse('bad-request', 'limit is not a number')
  const found = await listPods(gw, live, info.namespace, info, limit, protection.timeoutMs)
  if (exchange.gone) return FORWARD
  if (found.kind === 'unknown') {
    gw.log.warn('deletion could not be judged', { cluster: exchange.record.cluster, reason: found.message })
    const refused = follow(deletion, '', errorVerdict(found.message))
    if (refused !== undefined) return refused
  }
  if (found.kind === 'refused') return new CollectionAnswer(deletion).relay(found.answer)
  // Nothing to judge: upstream's own answer is the best.
  if (found.kind === 'unknown' || found.pods.length === 0) {
    keepBody(deletion, asked)
    return FORWARD
  }
  const answer = new CollectionAnswer(deletion, found.metadata, found.pods.length)
  const items = await judge(deletion, asked, found.pods, answer)
  const { requestor } = exchange
  const revoked = requestor && refuseRevoked(live.compiled.authentication.revoked, requestor)
  if (revoked !== undefined) {
    deletion.gate.release(items.flatMap(({ reservation }) => reservation ?? []))
    return revoked
  }
  return await deleteAll(deletion, asked, items, answer)
}

/** '' and 0 = all; undefined when it is no number. */
function limitOf(text: string): number | undefined {
  if (text === '') return 0
  return /^[0-9]{1,15}$/.test(text) ? Number(text) : undefined
}

/** What may be deleted, in the order of the list. */
async function judge(
  deletion: Deletion,
  asked: Asked,
  pods: readonly PodFacts[],
  answer: CollectionAnswer,
): Promise<CollectionItem[]> {
  const { protection, gate } = deletion
  // What is no longer there as the client means it is upstream's to refuse.
  const judged = pods.filter((pod) => {
    return !pod.terminating && isGuarded(protection, pod.labels) && (asked.uid === '' || asked.uid === pod.uid)
  })
  const requests = judged.map((pod) => requestOf(deletion, asked, pod))
  const verdicts = requests.length === 0 ? [] : await gate.review(requests)
  const byUid = new Map(judged.map((pod, i) => [pod.uid, verdicts[i] ?? errorVerdict('the ledger gave no verdict')]))
  const items: CollectionItem[] = []
  for (const pod of pods) {
    const verdict = byUid.get(pod.uid)
    const refused = verdict === undefined ? undefined : follow(deletion, pod.name, verdict)
    if (refused !== undefined) answer.refused(pod.name, refused)
    else items.push({ pod, unchanged: verdict?.freePass === true, reservation: verdict?.reservation })
  }
  return items
}

/** A pod that has changed since it was judged as one that is not lost by its deletion is judged again. */
async function deleteOne(
  deletion: Deletion,
  asked: Asked,
  listed: CollectionItem,
  sender: CollectionSender,
  answer: CollectionAnswer,
): Promise<void> {
  const { exchange, live, info, protection } = deletion
  let item = listed
  for (let round = 1; ; round++) {
    const outcome = await sender.send(item)
    if (outcome.kind !== 'changed' || round === MAX_ROUNDS) {
      answer.outcome(outcome)
      return
    }
    const found = await findPod(exchange.gw, live, info.namespace, item.pod.name, protection.timeoutMs)
    if (found.kind === 'absent' || (found.kind === 'pod' && found.pod.uid !== item.pod.uid)) {
      answer.outcome({ kind: 'gone' })
      return
    }
    if (found.kind === 'unknown') {
      const refused = follow(deletion, item.pod.name, errorVerdict(found.message))
      if (refused === undefined) item = { pod: item.pod, unchanged: false, reservation: undefined }
      else return answer.refused(item.pod.name, refused)
    } else {
      const [next] = await judge(deletion, asked, [found.pod], answer)
      if (next === undefined) return
      item = next
    }
  }
}

async function deleteAll(
  deletion: Deletion,
  asked: Asked,
  items: readonly CollectionItem[],
  answer: CollectionAnswer,
): Promise<Protected> {
  const { exchange, gate } = deletion
  // Cut while it was judged.
  const cut = (): boolean => exchange.phase === 'over'
  if (!cut()) exchange.gw.running.add(exchange)
  const sender = new CollectionSender(deletion, asked)
  let next = 0
  const work = async (): Promise<void> => {
    while (!cut() && !exchange.gone && !answer.failed) {
      const item = items[next++]
      if (item === undefined) return
      await deleteOne(deletion, asked, item, sender, answer)
    }
  }
  await Promise.all(Array.from({ length: Math.min(AT_ONCE, items.length) }, work))
  // What was never sent.
  const unsent = items.slice(next).flatMap(({ reservation }) => reservation ?? [])
  if (unsent.length > 0) gate.release(unsent)
  if (cut()) return 'answered'
  return answer.send()
}
