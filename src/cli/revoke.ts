// `portcullis revoke`: locks out a user, a certificate or a token, at once and on every replica, by spec.authentication.revoked; and takes it back.

import type { Revocation } from '../gateway/api/upstream-cluster/upstream-cluster.ts'
import { UPSTREAM_CLUSTERS } from '../gateway/api/upstream-cluster-kind.ts'
import type { JsonObject } from '../kit/api/json/json-object.ts'
import { UserError } from '../kit/api/validation/field-errors.ts'
import { parseDuration } from '../kit/core/text/duration.ts'
import { metaTime } from '../kit/core/text/meta-time.ts'
import { printable } from '../kit/core/text/printable.ts'
import type { ObjectClient } from '../kube/api/object-client.ts'
import { StatusError } from '../kube/api/status.ts'
import {
  type ControlPlaneOptions,
  getCluster,
  metadataOf,
  readPositiveDuration,
  withControlPlane,
} from './client/control-plane.ts'
import { membersNote } from './client/federated-members.ts'
import { withoutRevoked, withRevoked } from './client/revoked-list.ts'
import { certificateSubject, type RevokedSubject, tokenSubject } from './client/revoked-subject.ts'
import { waitApplied } from './client/wait-applied.ts'

export interface RevokeOptions extends ControlPlaneOptions {
  /** Default, with `all`: every cluster. */
  readonly cluster?: string
  readonly all: boolean
  /** Exactly one of the three. */
  readonly user?: string
  /** PEM (its first certificate), or a kubeconfig (the user of its current context). */
  readonly certificateFile?: string
  /** A token, or a kubeconfig (the user of its current context). */
  readonly tokenFile?: string
  readonly reason?: string
  /** Takes the revocation back; with a reason, only what was revoked for it. Default false. */
  readonly undo?: boolean
  /** Timeout until it is in force everywhere. Default 30s. */
  readonly timeout?: string
  /** Milliseconds since the epoch. */
  readonly now: () => number
}

export const REVOKE_MANAGER = 'portcullis-revoke'
const MAX_ATTEMPTS = 10

/** Resolves with the exit code: 1 after an error, or if a replica doesn't have it in force in time. */
export function revoke(options: RevokeOptions): Promise<number> {
  return withControlPlane(options, async (client) => {
    const { now, out, err, reason, undo = false } = options
    const { subjects, text } = readSubjects(options)
    const timeoutMs = readPositiveDuration('--timeout', options.timeout ?? '30s', parseDuration)
    const objects = await chosenClusters(client, options)
    const clusters = objects.map((object) => metadataOf(object).name)
    for (const note of objects.map((object) => membersNote(object, clusters))) if (note !== '') err(`note: ${note}\n`)
    const named = { subjects, ...(reason !== undefined && { reason }) }
    const revokedAt = metaTime(now())
    // Write to all clusters first, then wait: one slow replica must not delay the others.
    for (const cluster of clusters) {
      const { changed, generation } = await changeRevoked(client, cluster, (object) =>
        undo ? withoutRevoked(object, named) : withRevoked(object, named, revokedAt),
      )
      const is = undo ? (changed ? 'is no longer' : 'was not') : changed ? 'is' : 'was already'
      const why = undo && !changed && reason ? ` for ${printable(reason)}` : ''
      out(`${cluster}: ${text} ${is} revoked${why} (generation ${generation})\n`)
    }
    let code = 0
    for (const cluster of clusters) {
      code = Math.max(code, await waitApplied({ client, timeoutMs, now, out, err }, cluster))
    }
    return code
  })
}

export function readSubjects(options: Pick<RevokeOptions, 'user' | 'certificateFile' | 'tokenFile'>): {
  subjects: readonly RevokedSubject[]
  text: string
} {
  const { user, certificateFile, tokenFile } = options
  const given = [user, certificateFile, tokenFile].filter((one) => one !== undefined).length
  if (given !== 1) {
    const problem = given === 0 ? 'no user or credential is named' : 'more than one is named'
    throw new UserError(problem, 'give one of --user USER, --certificate FILE and --token-file FILE')
  }
  if (certificateFile !== undefined) {
    return certificateSubject(certificateFile)
  }
  if (tokenFile !== undefined) {
    const { subject, text } = tokenSubject(tokenFile)
    return { subjects: [subject], text }
  }
  if (user === undefined || user === '') throw new UserError('the user has no name', 'give --user USER')
  return { subjects: [{ user }], text: `user ${JSON.stringify(user)}` }
}

async function chosenClusters(client: ObjectClient, { cluster, all }: RevokeOptions): Promise<readonly JsonObject[]> {
  if (cluster !== undefined && all) throw new UserError('a cluster and --all are both given', 'give one of the two')
  if (cluster !== undefined) return [await getCluster(client, cluster)]
  if (!all) throw new UserError('no cluster is named', 'name one, or give --all')
  const { items } = await client.list(UPSTREAM_CLUSTERS, '')
  if (items.length === 0) throw new UserError('there is no UpstreamCluster', 'is --kubeconfig the right one?')
  return items.toSorted((a, b) => (metadataOf(a).name < metadataOf(b).name ? -1 : 1))
}

/** Writes nothing if there is nothing to change. Others may change entries at the same time. */
async function changeRevoked(
  client: ObjectClient,
  name: string,
  listOf: (object: JsonObject) => readonly Revocation[] | null | undefined,
): Promise<{ changed: boolean; generation: number }> {
  const at = { namespace: '', name }
  for (let attempt = 1; ; attempt++) {
    const object = await client.get(UPSTREAM_CLUSTERS, at)
    const { resourceVersion, generation = 1 } = metadataOf(object)
    const revoked = listOf(object)
    if (revoked === undefined) return { changed: false, generation }
    const patch = { metadata: { resourceVersion }, spec: { authentication: { revoked } } }
    const options = { fieldManager: REVOKE_MANAGER }
    try {
      const after = await client.patch(UPSTREAM_CLUSTERS, at, 'application/merge-patch+json', patch, options)
      return { changed: true, generation: metadataOf(after).generation ?? 1 }
    } catch (error) {
      if (!(error instanceof StatusError) || error.code !== 409 || attempt === MAX_ATTEMPTS) throw error
    }
  }
}
