// `portcullis access request`: creates an AccessGrant.

import { type ClusterArguments, readArguments, readChosen } from '../../cli/client/chosen-clusters.ts'
import { type ControlPlaneOptions, getCluster, metadataOf, withControlPlane } from '../../cli/client/control-plane.ts'
import { isGlob } from '../../gateway/core/choice/glob.ts'
import { UserError } from '../../kit/api/validation/field-errors.ts'
import { parseDuration } from '../../kit/core/text/duration.ts'
import { printable } from '../../kit/core/text/printable.ts'
import type { ObjectClient } from '../../kube/api/object-client.ts'
import { StatusError } from '../../kube/api/status.ts'
import { ACCESS_GRANT_API_VERSION, ACCESS_GRANT_KIND } from '../api/access-grant.ts'
import { ACCESS_GRANTS } from '../core/access-grant-kind.ts'

export interface RequestOptions extends ControlPlaneOptions, ClusterArguments {
  readonly group: readonly string[]
  readonly for: string
  readonly reason: string
  readonly user?: string
  readonly membersOf?: string
  readonly notBefore?: string
}

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
