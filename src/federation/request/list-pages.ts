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

/** Where the next page begins. */
export interface NextPage {
  /** Behind this object; undefined = this is all. */
  readonly place: ObjectPlace | undefined
  /** With which the member's own list goes on there; '' = it was not asked for one. */
  readonly next: string
}

/** Behind a page that is made of what is kept alone. */
export function endOfKept({ objects, left }: Pick<SelectedObjects, 'objects' | 'left'>): NextPage {
  const last = objects.at(-1)
  return { place: left === 0 ? undefined : last && { slot: last.slot, token: last.object.key }, next: '' }
}

/**
 * As kube-apiserver does: with selectors it is not known how many are left, and the last page may be empty
 * (apiserver/pkg/storage/etcd3/store.go GetList).
 */
export function pageOf(
  { objects, left, versions }: SelectedObjects,
  hasSelectors: boolean,
  { place, next }: NextPage,
  vectorOf: (versions: Versions) => VersionVector,
): Page {
  if (place === undefined) return { objects, continue: '', remaining: undefined }
  const token = encodeContinue({ vector: vectorOf(versions), ...place, next })
  return { objects, continue: token, remaining: hasSelectors || left === 0 ? undefined : left }
}
