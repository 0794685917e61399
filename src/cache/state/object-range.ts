// Objects in the order of their keys, and where among them a key is.

import { compareKeys } from '../core/keys/object-key.ts'
import type { CachedObject } from './cached-object.ts'

/** Objects in the order of their keys: those from index `from` to before `to`. */
export interface ObjectRange {
  readonly objects: readonly CachedObject[]
  readonly from: number
  readonly to: number
}

/** Index of the first whose key is not in front of this one. */
export function indexOfKey({ objects, from, to }: ObjectRange, key: string): number {
  let low = from
  let high = to
  while (low < high) {
    const middle = (low + high) >> 1
    if (compareKeys(objects[middle]?.key ?? '', key) < 0) low = middle + 1
    else high = middle
  }
  return low
}

/** What is in front of a key, and what is behind it: without the object that has it. */
export function aroundKey(
  range: ObjectRange,
  key: string,
): { readonly front: ObjectRange; readonly behind: ObjectRange } {
  const at = indexOfKey(range, key)
  const hasIt = at < range.to && range.objects[at]?.key === key
  return { front: { ...range, to: at }, behind: { ...range, from: hasIt ? at + 1 : at } }
}
