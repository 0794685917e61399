// `portcullis revoke`: locks out a user, a certificate or a token, at once and on every replica, by spec.authentication.revoked.

import type { Revocation } from '../gateway/api/upstream-cluster/upstream-cluster.ts'
import { UPSTREAM_CLUSTERS } from '../gateway/api/upstream-cluster-kind.ts'
import type { JsonObject } from '../kit/api/json/json-object.ts'
import { UserError } from '../kit/api/validation/field-errors.ts'
import { parseDuration } from '../kit/core/text/duration.ts'
import { metaTime } from '../kit/core/text/meta-time.ts'
import type { ObjectClient } from '../kube/api/object-client.ts'
import { StatusError } from '../kube/api/status.ts'
import {
  type ControlPlaneOptions,
  getCluster,
  metadataOf,
  readPositiveDuration,
  withControlPlane,
} from './client/control-plane.ts'
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
  /** Timeout until it is in force everywhere. Default 30s. */
  readonly timeout?: string
  /** Milliseconds since the epoch. */
  readonly now: () => number
}

const MANAGER = 'portcullis-revoke'
const MAX_ATTEMPTS = 10

/** Resolves with the exit code: 1 after an error, or if a replica doesn't have it in force in time. */
export function revoke(options: RevokeOptions): Promise<number> {
  return withControlPlane(options, async (client) => {
    const { now, out, err } = options
    const { subjects, text } = readSubjects(options)
    const timeoutMs = readPositiveDuration('--timeout', options.timeout ?? '30s', parseDuration)
    const clusters = await chosenClusters(client, options)
    const entry = { ...(options.reason && { reason: options.reason }), revokedAt: metaTime(now()) }
    // Write to all clusters first, then wait: one slow replica must not delay the others.
    for (const cluster of clusters) {
      const { added, generation } = await addTo(client, cluster, subjects, entry)
      out(`${cluster}: ${text} ${added ? 'is' : 'was already'} revoked (generation ${generation})\n`)
    }
    let code = 0
    for (const cluster of clusters) {
      code = Math.max(code, await waitApplied({ client, timeoutMs, now, out, err }, cluster))
    }
    return code
  })
}

function readSubjects(options: RevokeOptions): { subjects: readonly RevokedSubject[]; text: string } {
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

async function chosenClusters(client: ObjectClient, { cluster, all }: RevokeOptions): Promise<readonly string[]> {
  if (cluster !== undefined && all) throw new UserError('a cluster and --all are both given', 'give one of the two')
  if (cluster !== undefined) return [metadataOf(await getCluster(client, cluster)).name]
  if (!all) throw new UserError('no cluster is named', 'name one, or give --all')
  const { items } = await client.list(UPSTREAM_CLUSTERS, '')
  if (items.length === 0) throw new UserError('there is no UpstreamCluster', 'is --kubeconfig the right one?')
  return items.map((item) => metadataOf(item).name).sort()
}

/** Writes nothing if everything is already listed. Others may add entries at the same time. */
async function addTo(
  client: ObjectClient,
  name: string,
  subjects: readonly RevokedSubject[],
  entry: Pick<Revocation, 'reason' | 'revokedAt'>,
): Promise<{ added: boolean; generation: number }> {
  for (let attempt = 1; ; attempt++) {
    const object = await client.get(UPSTREAM_CLUSTERS, { namespace: '', name })
    const { resourceVersion, generation = 1 } = metadataOf(object)
    const known = revokedOf(object)
    const missing = subjects.filter((subject) => !known.some((one) => keyOf(one) === keyOf(subject)))
    if (missing.length === 0) return { added: false, generation }
    const revoked = [...known, ...missing.map((subject) => ({ ...subject, ...entry }))]
    const patch = { metadata: { resourceVersion }, spec: { authentication: { revoked } } }
    const options = { fieldManager: MANAGER }
    const at = { namespace: '', name }
    try {
      const after = await client.patch(UPSTREAM_CLUSTERS, at, 'application/merge-patch+json', patch, options)
      return { added: true, generation: metadataOf(after).generation ?? 1 }
    } catch (error) {
      if (!(error instanceof StatusError) || error.code !== 409 || attempt === MAX_ATTEMPTS) throw error
    }
  }
}

function revokedOf(object: JsonObject): readonly Revocation[] {
  const spec = object['spec'] as { authentication?: { revoked?: readonly Revocation[] } } | undefined
  return spec?.authentication?.revoked ?? []
}

function keyOf({ user, certificateFingerprint, tokenHash }: RevokedSubject): string {
  return JSON.stringify([user, certificateFingerprint, tokenHash])
}
