// `portcullis access list`: the grants that are in force or asked for.

import { type ControlPlaneOptions, withControlPlane } from '../../cli/client/control-plane.ts'
import type { JsonObject } from '../../kit/api/json/json-object.ts'
import { UserError } from '../../kit/api/validation/field-errors.ts'
import { printable, safeJson } from '../../kit/core/text/printable.ts'
import { textTable } from '../../kit/core/text/text-table.ts'
import { ACCESS_GRANTS } from '../core/access-grant-kind.ts'
import { readGrant } from '../core/read-grant.ts'

export interface ListAccessOptions extends ControlPlaneOptions {
  /** Default false. */
  readonly ended?: boolean
  readonly output?: string
}

const HEAD = ['NAME', 'PHASE', 'FOR', 'CLUSTERS', 'GROUPS', 'ENDS', 'REQUESTED BY', 'APPROVED BY', 'REASON']

export function listAccess(options: ListAccessOptions): Promise<number> {
  const { output, ended = false, out } = options
  const needs = 'list of accessgrants'
  return withControlPlane({ ...options, needs, kind: ACCESS_GRANTS }, async (client) => {
    if (output !== undefined && output !== 'json') throw new UserError(`-o ${output} is not a format`, 'write -o json')
    const { items } = await client.list(ACCESS_GRANTS, '')
    const shown = items.filter((object) => ended || readGrant(object).phase !== 'Ended')
    if (output === 'json') out(`${safeJson(shown)}\n`)
    else if (shown.length === 0) out('no access is granted or requested\n')
    else out(textTable([HEAD, ...shown.map(rowOf)]))
    return 0
  })
}

function rowOf(object: JsonObject): readonly string[] {
  const { name, spec, status, phase } = readGrant(object)
  const { subject, clusters, groups, reason } = spec
  const { requestedBy, approvedBy, endedAt, endsAt = '-' } = status
  return [
    name,
    phase,
    subject.kind === 'User' ? subject.name : `group:${subject.name}`,
    clusters.join(','),
    groups.join(','),
    endedAt ?? endsAt,
    requestedBy?.user ?? '-',
    approvedBy?.user ?? '-',
    reason,
  ].map(printable)
}
