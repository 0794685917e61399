// What clients of a federated cluster have seen, as what each of its members has done: their own names and versions in the place of the federated ones.

import { parseVector } from '../../../src/federation/core/vectors.ts'
import { MEMBER_SEPARATOR } from '../../../src/gateway/api/upstream-cluster/federation/member-names.ts'
import type { SeenByInformer, Stretch, Version } from '../informers/informers.ts'

interface Member {
  readonly name: string
  readonly slot: number
}

/** What one member has done. Its stretches are as many as those of the federated cluster. */
export function changesOf({ name, slot }: Member, seen: SeenByInformer): SeenByInformer {
  const own = (version: Version): Version => slotOf(version, slot)
  const stretches = seen.stretches.map(({ from, to, events }) => ({
    from: own(from),
    to: own(to),
    events: events
      .filter(({ key }) => isOf(name, key))
      .map(({ type, version, key }) => ({ type, version: own(version), key })),
  }))
  return {
    resource: seen.resource,
    problems: [...seen.problems, ...stretches.flatMap(toldAgain)],
    stretches,
    store: storeOf({ name, slot }, seen.store),
  }
}

/** The version of all members grows with another member, too. */
function toldAgain({ from, events }: Stretch): readonly string[] {
  return events
    .filter(({ version }, at) => Number(version) <= Number(events[at - 1]?.version ?? from))
    .map(({ type, version, key }) => `${type} of ${key} at ${version} was told after later ones, or again`)
}

/** `MEMBER--namespace/name` -> uid and the member's own version, of one member's objects. */
export function storeOf(
  { name, slot }: Member,
  store: Readonly<Record<string, string>>,
): Readonly<Record<string, string>> {
  const rows = Object.entries(store)
    .filter(([key]) => isOf(name, key))
    .map(([key, text]) => {
      const [uid = '', version = ''] = text.split(' ')
      return [key, `${uid} ${slotOf(version, slot)}`] as const
    })
  return Object.fromEntries(rows)
}

/** What of a row of versions is lower in any slot than before. */
export function fallen(versions: readonly Version[]): readonly string[] {
  return versions.flatMap((version, at) => {
    const [now, before] = [version, versions[at - 1] ?? version].map((text) => parseVector(text)?.versions ?? [])
    return now?.some((slot, index) => Number(slot) < Number(before?.[index])) === true
      ? [`${versions[at - 1]} then ${version}`]
      : []
  })
}

export function slotOf(version: Version, slot: number): Version {
  const own = parseVector(version)?.versions[slot]
  if (own === undefined) throw new Error(`${version} is not the version of a federated cluster`)
  return own
}

function isOf(member: string, key: string): boolean {
  return key.startsWith(`${member}${MEMBER_SEPARATOR}`)
}
