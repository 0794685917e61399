// `portcullis access`: requests an AccessGrant, shows and approves the request of another user, lists grants, and ends them.

import { type ClusterArguments, readArguments, readChosen } from '../../cli/client/chosen-clusters.ts'
import { type ControlPlaneOptions, getCluster, metadataOf, withControlPlane } from '../../cli/client/control-plane.ts'
import { type ConfirmOptions, confirmed } from '../../cli/command/confirm.ts'
import { isGlob } from '../../gateway/core/choice/glob.ts'
import type { JsonObject } from '../../kit/api/json/json-object.ts'
import { UserError } from '../../kit/api/validation/field-errors.ts'
import { formatDuration, parseDuration } from '../../kit/core/text/duration.ts'
import { printable, safeJson } from '../../kit/core/text/printable.ts'
import { textTable } from '../../kit/core/text/text-table.ts'
import type { ObjectClient } from '../../kube/api/object-client.ts'
import { StatusError } from '../../kube/api/status.ts'
import { ACCESS_GRANT_API_VERSION, ACCESS_GRANT_KIND } from '../api/access-grant.ts'
import { ACCESS_GRANTS } from '../core/access-grant-kind.ts'
import { readGrant } from '../core/read-grant.ts'

export interface RequestOptions extends ControlPlaneOptions, ClusterArguments {
  readonly group: readonly string[]
  readonly for: string
  readonly reason: string
  readonly user?: string
  readonly membersOf?: string
  readonly notBefore?: string
}

/** Creates an AccessGrant. */
export function requestAccess(options: RequestOptions): Promise<number> {
  const needs = 'create of accessgrants: --access-requester of the gateway'
  return withControlPlane({ ...options, needs, kind: ACCESS_GRANTS }, async (client) => {
    const durationSeconds = secondsOf(options.for)
    const subject = subjectOf(options)
    const clusters = await namesOf(client, options)
    const { group: groups, reason, notBefore } = options
    const spec = { clusters, groups, reason, durationSeconds }
    const created = await client.create(ACCESS_GRANTS, {
      apiVersion: ACCESS_GRANT_API_VERSION,
      kind: ACCESS_GRANT_KIND,
      metadata: { generateName: 'access-' },
      spec: { ...spec, ...(subject !== undefined && { subject }), ...(notBefore !== undefined && { notBefore }) },
    })
    const name = printable(metadataOf(created).name)
    options.out(`${name} is requested; another user must approve it: portcullis access approve ${name}\n`)
    return 0
  })
}

/** @throws {UserError} */
function secondsOf(text: string): number {
  const ms = parseDuration(text)
  if (ms === undefined || ms % 1000 !== 0)
    throw new UserError(`--for ${JSON.stringify(text)} is not a time`, 'write --for 1h')
  return ms / 1000
}

/** undefined = the caller. @throws {UserError} */
function subjectOf({ user, membersOf }: RequestOptions): { kind: 'User' | 'Group'; name: string } | undefined {
  if (user !== undefined && membersOf !== undefined) {
    throw new UserError('--user and --members-of are both given', 'give one of the two')
  }
  if (membersOf !== undefined) return { kind: 'Group', name: membersOf }
  return user === undefined ? undefined : { kind: 'User', name: user }
}

/** Names only: what is approved must not grow with the labels of clusters. Users who may not read UpstreamClusters write them in full. */
async function namesOf(client: ObjectClient, options: RequestOptions): Promise<readonly string[]> {
  const read = readArguments(options)
  const { names, except } = read.choice
  if (names.length === 0 || except.length > 0 || names.some(isGlob)) {
    return (await readChosen(client, read, true)).objects.map((object) => metadataOf(object).name)
  }
  for (const name of names) {
    await getCluster(client, name).catch((error: unknown) => {
      if (!(error instanceof StatusError && error.code === 403)) throw error
    })
  }
  return names
}

interface ApproveOptions extends ControlPlaneOptions, ConfirmOptions {
  readonly name: string
}

/** Shows what is asked for, asks, and approves this very object. */
export function approveAccess(options: ApproveOptions): Promise<number> {
  const { name, out } = options
  const needs = 'get of accessgrants and create of accessgrants/approval: --access-approver of the gateway'
  return withControlPlane({ ...options, needs, kind: ACCESS_GRANTS }, async (client) => {
    const at = { namespace: '', name }
    const read = await client.get(ACCESS_GRANTS, at)
    const { uid, phase } = readGrant(read)
    if (phase !== 'Pending') throw new UserError(`${name} is ${phase}`, 'portcullis access list shows what is pending')
    out(grantText(read))
    if (!(await confirmed(options, `approve ${name}?`))) return 1
    if (client.post === undefined) throw new Error('this client cannot approve')
    const { status } = readGrant(await client.post(ACCESS_GRANTS, at, 'approval', { uid }))
    out(`${name} is approved, from ${status.startsAt} until ${status.endsAt}\n`)
    return 0
  })
}

/** As approvers read it. */
function grantText(object: JsonObject): string {
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

interface ListAccessOptions extends ControlPlaneOptions {
  /** Default false. */
  readonly ended?: boolean
  readonly output?: string
}

const HEAD = ['NAME', 'PHASE', 'FOR', 'CLUSTERS', 'GROUPS', 'ENDS', 'REQUESTED BY', 'APPROVED BY', 'REASON']

/** Those that are in force or asked for. */
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

interface EndOptions extends ControlPlaneOptions {
  readonly name: string
}

export function endAccess(options: EndOptions): Promise<number> {
  const { name, out } = options
  const needs = 'create of accessgrants/end'
  return withControlPlane({ ...options, needs, kind: ACCESS_GRANTS }, async (client) => {
    if (client.post === undefined) throw new Error('this client cannot end access')
    await client.post(ACCESS_GRANTS, { namespace: '', name }, 'end', {})
    out(`${name} has ended\n`)
    return 0
  })
}
