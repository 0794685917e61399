// Lists of several replicas, without doubles.

import type { RefusalRow } from '../../../api/insight/overview.ts'
import { short } from '../figures.ts'

/** The rows of all with the same key, in the order of the first of each. */
export function groupRows<T>(
  lists: readonly (readonly T[])[],
  keyOf: (row: T) => string,
): readonly (readonly [T, ...T[]])[] {
  const groups = new Map<string, [T, ...T[]]>()
  for (const row of lists.flat()) {
    const group = groups.get(keyOf(row))
    if (group === undefined) groups.set(keyOf(row), [row])
    else group.push(row)
  }
  return [...groups.values()]
}

/** The first of those with the same key. */
export function distinctRows<T>(lists: readonly (readonly T[])[], keyOf: (row: T) => string): readonly T[] {
  return groupRows(lists, keyOf).map(([first]) => first)
}

export function sumOf<T>(rows: readonly T[], of: (row: T) => number): number {
  return rows.reduce((sum, row) => sum + of(row), 0)
}

type Refusal = Omit<RefusalRow, 'cluster'> & { readonly cluster?: string }

/** The most frequent first. */
export function mergeRefusals<T extends Refusal>(lists: readonly (readonly T[])[]): readonly T[] {
  return groupRows(lists, ({ cluster, reason, rule }) => JSON.stringify([cluster, reason, rule]))
    .map((same) => ({
      ...same[0],
      perSecond: short(sumOf(same, ({ perSecond }) => perSecond)),
      count: sumOf(same, ({ count }) => count),
    }))
    .sort((a, b) => b.count - a.count)
}
