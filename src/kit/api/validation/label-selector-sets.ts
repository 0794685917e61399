// Whether one label selector selects at least what another does. Requirements on different labels are independent, and there is always a value that
// no requirement names, so the answer is exact.

import type { Loose } from '../json/object-shape.ts'
import type { LabelSelector } from './label-selector-schema.ts'

/** Allowed values of a label: one of `values`, or any other than these; or missing. */
interface LabelSet {
  readonly listed: boolean
  readonly values: ReadonlySet<string>
  readonly absent: boolean
}

/** A requirement with its position in the selector: `.matchLabels[app]`. */
interface SetRequirement {
  readonly path: string
  readonly key: string
  readonly set: LabelSet
}

const NONE: ReadonlySet<string> = new Set()
const ANY: LabelSet = { listed: false, values: NONE, absent: true }

/** The selector selects no pod: requirements on this label contradict each other. undefined = it may select some. */
export function contradiction(selector: Loose<LabelSelector>): string | undefined {
  return [...byKey(selector)].find(([, set]) => isEmpty(set))?.[0]
}

/** Requirements of `wide`, by position, that exclude something `narrow` selects. */
export function leavesOut(narrow: Loose<LabelSelector>, wide: Loose<LabelSelector>): readonly string[] {
  const selected = byKey(narrow)
  if ([...selected.values()].some(isEmpty)) return []
  return requirementsOf(wide)
    .filter(({ key, set }) => !isSubset(selected.get(key) ?? ANY, set))
    .map(({ path }) => path)
}

function byKey(selector: Loose<LabelSelector>): ReadonlyMap<string, LabelSet> {
  const byKey = new Map<string, LabelSet[]>()
  for (const { key, set } of requirementsOf(selector)) {
    const sets = byKey.get(key)
    if (sets === undefined) byKey.set(key, [set])
    else sets.push(set)
  }
  return new Map([...byKey].map(([key, sets]) => [key, intersection(sets)]))
}

/** Skips incomplete and unknown requirements: they are reported as errors elsewhere. */
function requirementsOf(selector: Loose<LabelSelector>): readonly SetRequirement[] {
  const found: SetRequirement[] = []
  for (const [key, value] of Object.entries(selector.matchLabels ?? {})) {
    if (value === undefined) continue
    found.push({ path: `.matchLabels[${key}]`, key, set: { listed: true, values: new Set([value]), absent: false } })
  }
  for (const [index, requirement] of (selector.matchExpressions ?? []).entries()) {
    const { key, operator, values = [] } = requirement ?? {}
    const set = setOf(operator, new Set(values.filter((value) => value !== undefined)))
    if (key !== undefined && set !== undefined) found.push({ path: `.matchExpressions[${index}]`, key, set })
  }
  return found
}

function setOf(operator: string | undefined, values: ReadonlySet<string>): LabelSet | undefined {
  if (operator === 'In') return { listed: true, values, absent: false }
  // A missing label is in no list.
  if (operator === 'NotIn') return { listed: false, values, absent: true }
  if (operator === 'Exists') return { listed: false, values: NONE, absent: false }
  return operator === 'DoesNotExist' ? { listed: true, values: NONE, absent: true } : undefined
}

function isEmpty({ listed, values, absent }: LabelSet): boolean {
  return listed && values.size === 0 && !absent
}

/** Intersects all sets at once: doing it pairwise would copy the intermediate result each time. */
function intersection(sets: readonly LabelSet[]): LabelSet {
  const absent = sets.every((set) => set.absent)
  const excluded = new Set<string>()
  let listed: ReadonlySet<string> | undefined
  for (const set of sets) {
    if (!set.listed) for (const value of set.values) excluded.add(value)
    else listed = listed === undefined ? set.values : smallerCommon(listed, set.values)
  }
  if (listed === undefined) return { listed: false, values: excluded, absent }
  return { listed: true, values: new Set([...listed].filter((value) => !excluded.has(value))), absent }
}

/** Takes as many steps as the smaller set has values. */
function smallerCommon(a: ReadonlySet<string>, b: ReadonlySet<string>): ReadonlySet<string> {
  const [few, many] = a.size <= b.size ? [a, b] : [b, a]
  return new Set([...few].filter((value) => many.has(value)))
}

/** Takes at most as many steps as `b` has values, since one `a` is compared with every requirement of a selector. */
function isSubset(a: LabelSet, b: LabelSet): boolean {
  if (a.absent && !b.absent) return false
  if (!b.listed) return [...b.values].every((value) => a.values.has(value) !== a.listed)
  return a.listed && a.values.size <= b.values.size && [...a.values].every((value) => b.values.has(value))
}
