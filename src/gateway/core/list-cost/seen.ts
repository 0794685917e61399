// What the response to a list reveals about the size of the whole list.

import type { ListAnswer, ListRequest } from '../../api/list-request.ts'
import { ASSUMED_ITEM_BYTES } from './list-request.ts'
import type { ListSeen } from './list-sizes.ts'

/** Minimum items of a page to estimate item size: a single unusual object must not decide. */
const SAMPLE = 50

/**
 * A page reveals the item size and, if it states the number of remaining items, the size of the whole list. kube-apiserver states it only
 * for lists without selectors (metav1.ListMeta.remainingItemCount).
 * @param complete the response was received to its end
 * @param nowMs milliseconds since the epoch
 */
export function seenOf(
  { limit, continued, anyVersion, size }: ListRequest,
  answer: ListAnswer,
  complete: boolean,
  nowMs: number,
): ListSeen {
  const bytes = answer.bytes(complete)
  const behind = limit > 0 && complete ? answer.remainingItems() : 0
  const unknown = { bytes: 0, partial: true, items: 0, itemBytes: 0, nowMs }
  if (behind > 0) {
    const itemBytes = Math.max(1, Math.round(bytes / limit))
    if (limit < SAMPLE) {
      if (continued) return unknown
      const items = limit + behind
      const known = size === undefined || size.itemBytes === 0 ? ASSUMED_ITEM_BYTES : size.itemBytes
      return { ...unknown, bytes: Math.min(itemBytes, known) * items, items }
    }
    // The number of items before this page is unknown.
    if (continued) return { ...unknown, itemBytes }
    const items = limit + behind
    return { bytes: itemBytes * items, partial: false, items, itemBytes, nowMs }
  }
  // The last page, one with unreadable metadata, or a response from the cache, which has no pages.
  if (continued) return unknown
  return { ...unknown, bytes, partial: !complete || (limit > 0 && !anyVersion) }
}
