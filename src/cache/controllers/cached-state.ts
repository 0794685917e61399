// In which state a collection is, and what an operator is told of it: which field is wrong, why, and how to fix it.

import type { CacheState } from '../../gateway/api/upstream-cluster/read-cache/read-cache-in-force.ts'
import { CACHE_RIGHTS_FILE, CACHE_USER } from '../../gateway/core/identity/gateway-rights.ts'
import { type CollectionId, resourceLabel } from '../core/changes/collection.ts'
import type { CacheDropReason, FollowedCollection } from './followed-collection.ts'

/** Why it is not kept. */
export interface CachedFault {
  readonly reason: CacheDropReason
  readonly message: string
}

interface Seen {
  readonly id: CollectionId
  /** Its entry: `spec.cache[0]`. */
  readonly place: string
  readonly collection: Pick<FollowedCollection, 'version' | 'isFollowed' | 'refusal' | 'message'> | undefined
  readonly fault: CachedFault | undefined
}

const DROPPED: Readonly<Record<CacheDropReason, CacheState>> = {
  'over-budget': 'TooLarge',
  'no-room': 'TooLarge',
  unreadable: 'Unreadable',
  'went-back': 'WentBack',
}
const NOT_FOUND = 404
const METHOD_NOT_ALLOWED = 405

export function stateOf({ collection, fault }: Pick<Seen, 'collection' | 'fault'>): CacheState {
  if (collection === undefined) return fault === undefined ? 'Loading' : DROPPED[fault.reason]
  const { version, isFollowed, refusal } = collection
  if (refusal === NOT_FOUND) return 'UnknownResource'
  if (refusal !== 0) return 'Refused'
  if (version === '') return 'Loading'
  return isFollowed ? 'Serving' : 'Stale'
}

/** '' = nothing is wrong. */
export function faultMessage(seen: Seen): string {
  const { id, place, collection, fault } = seen
  const said = collection?.message ?? ''
  const name = resourceLabel(id)
  const where = id.namespace === '' ? '' : ` in namespace ${id.namespace}`
  switch (stateOf(seen)) {
    case 'UnknownResource':
      return `${place}: the cluster has no ${name} of version ${id.version}; write group, version and resource as "kubectl api-resources" shows them`
    case 'Refused':
      return `${place}: the cluster does not let ${name}${where} be followed (${collection?.refusal}: ${said}); ${refusalFix(collection?.refusal)}`
    case 'TooLarge':
      if (fault?.reason === 'no-room')
        return `${place}: ${name}${where}: ${fault.message}; raise that setting, or keep less with namespaces`
      return `${place}.maxBytes: ${name}${where}: ${fault?.message}; raise it, or keep less with namespaces`
    case 'Unreadable':
    case 'WentBack':
      return `${place}: ${name}${where} is read again after a while: ${fault?.message}`
    case 'Stale':
      return `${place}: ${name}${where} cannot be followed: ${said}`
    case 'Loading':
      return said === '' ? '' : `${place}: ${name}${where} cannot be read: ${said}`
    case 'Serving':
      return ''
  }
}

function refusalFix(code: number | undefined): string {
  if (code === METHOD_NOT_ALLOWED) return 'remove it: what cannot be listed and watched cannot be kept'
  // A cluster authorizes before it looks whether there is such a resource.
  return `if "kubectl api-resources" shows it, let the user ${CACHE_USER} list and watch it, as in ${CACHE_RIGHTS_FILE}`
}
