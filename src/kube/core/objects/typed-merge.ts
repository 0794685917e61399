// Applies one value on top of another (sigs.k8s.io/structured-merge-diff/v6/typed/merge.go).

import { isRecord } from '../../../kit/api/json/object-shape.ts'
import { type Atom, deduced, type ListAtom, type MapAtom, memberAtom } from './atom.ts'
import { elementOf } from './typed-fields.ts'

/** undefined = absent. */
export function mergeValues(atom: Atom, live: unknown, applied: unknown): unknown {
  const { map, list, scalar } = deduced(atom, applied === undefined ? live : applied)
  if (map !== undefined) return mergeMaps(map, live, applied)
  if (scalar !== undefined || list === undefined) return topmost(live, applied)
  return mergeLists(list, live, applied)
}

function topmost(live: unknown, applied: unknown): unknown {
  return applied === undefined ? live : applied
}

function mergeMaps(map: MapAtom, live: unknown, applied: unknown): unknown {
  const below = isRecord(live) ? live : {}
  const above = isRecord(applied) ? applied : {}
  const keys = new Set([...Object.keys(below), ...Object.keys(above)])
  if (map.atomic || keys.size === 0) return topmost(live, applied)
  const merged: [string, unknown][] = []
  for (const key of keys) {
    const atom = memberAtom(map, key)
    const old = Object.hasOwn(below, key) ? below[key] : undefined
    const value = atom === undefined ? old : mergeValues(atom, old, Object.hasOwn(above, key) ? above[key] : undefined)
    if (value !== undefined) merged.push([key, value])
  }
  return merged.length === 0 ? undefined : Object.fromEntries(merged)
}

function mergeLists(list: ListAtom, live: unknown, applied: unknown): unknown {
  const below: readonly unknown[] = Array.isArray(live) ? live : []
  const above: readonly unknown[] = Array.isArray(applied) ? applied : []
  if (list.atomic || (below.length === 0 && above.length === 0)) return topmost(live, applied)
  const merged = mergeItems(list, below, above)
  return merged.length === 0 ? undefined : merged
}

/** Items in both lists come in the order of the applied list; the others stay next to their neighbours. */
function mergeItems(list: ListAtom, live: readonly unknown[], applied: readonly unknown[]): unknown[] {
  const liveElements = live.map((item) => elementOf(list, item))
  const appliedElements = applied.map((item) => elementOf(list, item))
  const liveItems = uniqueItems(liveElements, live)
  const appliedItems = uniqueItems(appliedElements, applied)
  const shared = appliedElements.filter((element) => liveItems.has(element))
  const out: unknown[] = []
  const taken = new Set<string>()
  // An index, because shifting a long list moves all of it.
  let sharedSoFar = 1
  let nextShared = shared[0]
  const put = (old: unknown, now: unknown): void => {
    const value = mergeValues(list.items, old, now)
    if (value !== undefined) out.push(value)
  }
  for (let at = 0, to = 0; at < live.length || to < applied.length; ) {
    const old = liveElements[at]
    const now = appliedElements[to]
    if (old !== undefined && now !== undefined && old !== now) {
      if (appliedItems.has(old) && nextShared !== undefined && nextShared !== old) {
        at++
        continue
      }
    }
    if (old !== undefined && old !== now) {
      if (!appliedItems.has(old)) {
        put(live[at++], undefined)
        continue
      }
      if (taken.has(old)) at++
    }
    if (now === undefined) continue
    if (old === now) at++
    taken.add(now)
    put(liveItems.get(now), appliedItems.get(now))
    to++
    if (old === now || nextShared === now) nextShared = shared[sharedSoFar++]
  }
  return out
}

/** Duplicate items are not merged with anything. */
function uniqueItems(elements: readonly string[], items: readonly unknown[]): Map<string, unknown> {
  const found = new Map<string, unknown>()
  for (const [at, element] of elements.entries()) found.set(element, found.has(element) ? null : items[at])
  return found
}
