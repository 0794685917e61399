// Pages of a list: all of one state, the members one behind the other. The token names the versions of that state and the last object that was sent.

import { type Refusal, refuse } from '../../kit/core/refusal/refusal.ts'
import { type ContinuePlace, encodeContinue, parseContinue } from '../core/continue.ts'
import type { FederatedRead } from '../core/federated-read.ts'
import type { VersionVector } from '../core/vectors.ts'
import type { Versions } from '../state/federated-collection.ts'
import type { ObjectPlace, SelectedObjects } from './select-objects.ts'
import type { ListEnd, MemberObject } from './shown-objects.ts'

interface Page extends ListEnd {
  readonly objects: readonly MemberObject[]
}

/** undefined = it begins. */
export function continuedAfter(read: FederatedRead): ContinuePlace | undefined | Refusal {
  if (read.kind !== 'list' || read.continue === '') return undefined
  return (
    parseContinue(read.continue) ?? refuse('bad-request', 'continue: Invalid value: it is not a token of this cluster')
  )
}

/** Up to where what is kept is proved by lists of the members. */
export interface ProvedEnd {
  /** The last object of which that is known. */
  readonly upTo: ObjectPlace | undefined
  /** With which the list of this member goes on behind it. */
  readonly next: string
}

export const ALL_PROVED: ProvedEnd = { upTo: undefined, next: '' }

/**
 * As kube-apiserver does: with selectors it is not known how many are left, and the last page may be empty
 * (apiserver/pkg/storage/etcd3/store.go GetList).
 * @param limit 0 = none
 */
export function pageOf(
  { objects, left, versions }: SelectedObjects,
  { limit, hasSelectors }: { readonly limit: number; readonly hasSelectors: boolean },
  { upTo, next }: ProvedEnd,
  vectorOf: (versions: Versions) => VersionVector,
): Page {
  const last = objects.at(-1)
  const lastPlace = last && { slot: last.slot, token: last.object.key }
  const isFull = limit > 0 && objects.length === limit
  const place = isFull || upTo === undefined ? lastPlace : upTo
  if ((left === 0 && upTo === undefined) || place === undefined) return { objects, continue: '', remaining: undefined }
  const isThere = place.slot === upTo?.slot && place.token === upTo.token
  const token = encodeContinue({ vector: vectorOf(versions), ...place, next: isThere ? next : '' })
  return { objects, continue: token, remaining: hasSelectors || left === 0 ? undefined : left }
}
