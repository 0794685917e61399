// What the answer to a list shows of the size of the whole list.

import type { ListAnswer, ListRequest } from '../../api/list-request.ts'
import { ASSUMED_ITEM_BYTES } from './list-request.ts'
import type { ListSeen } from './list-sizes.ts'

/** Items of a page that say how large others are: one object that somebody has made large, or small, does not. */
const SAMPLE = 50

/**
 * A page shows how large an item is, and where it says how many items are behind it, the whole list. kube-apiserver says so only of lists
 * without selectors (metav1.ListMeta.remainingItemCount).
 * @param complete the answer came to its end
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
    // How many are in front of this page is not known.
    if (continued) return { ...unknown, itemBytes }
    const items = limit + behind
    return { bytes: itemBytes * items, partial: false, items, itemBytes, nowMs }
  }
  // The last page, one whose metadata cannot be read, or the cache's answer, which knows no pages.
  if (continued) return unknown
  return { ...unknown, bytes, partial: !complete || (limit > 0 && !anyVersion) }
}
