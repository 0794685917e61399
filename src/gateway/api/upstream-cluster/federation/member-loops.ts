// Members are clusters with servers: one that has members itself would be read through two federations, or through itself.

import type { FieldError } from '../../../../kit/api/json/field-error.ts'
import { type JsonObject, nameOf } from '../../../../kit/api/json/json-object.ts'
import { recordOf, recordsOf, textOf } from '../../../../kit/api/json/object-shape.ts'
import { FieldErrors, reportable } from '../../../../kit/api/validation/field-errors.ts'
import { clusterOfMember } from './federation.ts'

/**
 * To refuse a write. What slips in is not read (condition MembersReady). Takes any objects.
 * @param others all other UpstreamClusters
 */
export function membersWithMembers(object: JsonObject, others: readonly JsonObject[]): readonly FieldError[] {
  const members = membersOf(object)
  if (members.length === 0) return []
  const out = new FieldErrors()
  const own = nameOf(object)
  const places = new Map(members.map((cluster, index) => [cluster, index]))
  for (const other of others) {
    const ofOther = membersOf(other)
    if (ofOther.length === 0) continue
    const name = nameOf(other)
    const index = places.get(name)
    if (index !== undefined)
      out.invalid(`spec.members[${index}]`, `UpstreamCluster ${JSON.stringify(name)} has members itself`, 'name those')
    if (ofOther.includes(own))
      out.invalid(
        'spec.members',
        `UpstreamCluster ${JSON.stringify(name)} has this cluster as a member`,
        'remove it there first, or make another UpstreamCluster of these members',
      )
  }
  return reportable(out.found, out.more)
}

/** The names of their UpstreamClusters. */
function membersOf({ spec }: JsonObject): readonly string[] {
  return recordsOf(recordOf(spec)['members']).map(({ name, cluster }) =>
    clusterOfMember({ name: textOf(name), cluster: textOf(cluster) }),
  )
}
