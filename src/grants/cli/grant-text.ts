// An AccessGrant as approvers read it.

import type { JsonObject } from '../../kit/api/json/json-object.ts'
import { formatDuration } from '../../kit/core/text/duration.ts'
import { printable } from '../../kit/core/text/printable.ts'
import { readGrant } from '../core/read-grant.ts'

export function grantText(object: JsonObject): string {
  const { spec, status } = readGrant(object)
  const { subject, clusters, groups, reason, notBefore, durationSeconds } = spec
  const lines = [
    ['requested by', `${status.requestedBy?.user}, ${status.requestedBy?.time}`],
    ['for', `${subject.kind === 'User' ? 'user' : 'members of'} ${subject.name}`],
    ['clusters', clusters.join(', ')],
    ['groups', groups.join(', ')],
    ['lasts', `${formatDuration(durationSeconds * 1000)} from ${notBefore ?? 'the approval on'}`],
    ['reason', reason],
  ]
  return lines.map(([name = '', value = '']) => `${name.padEnd(14)}${printable(value)}\n`).join('')
}
