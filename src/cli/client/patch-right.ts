// Which UpstreamClusters the caller may change, asked before anything is written: a command must not find out halfway.

import { UPSTREAM_CLUSTERS } from '../../gateway/api/upstream-cluster-kind.ts'
import { recordOf, textOf } from '../../kit/api/json/object-shape.ts'
import { LEASES } from '../../kube/api/kinds/lease-kind.ts'
import type { ObjectClient } from '../../kube/api/object-client.ts'
import type { ResourceKind } from '../../kube/api/resource-kind.ts'
import { inParallel } from './in-parallel.ts'

/** Only used to create one: nothing is stored. */
const SELF_ACCESS_REVIEWS: ResourceKind = {
  ...LEASES,
  group: 'authorization.k8s.io',
  version: 'v1',
  kind: 'SelfSubjectAccessReview',
  plural: 'selfsubjectaccessreviews',
  namespaced: false,
}

/** Why the caller may not patch them, by name. Who may patch all is asked about once. */
export async function refusedPatches(
  client: ObjectClient,
  names: readonly string[],
): Promise<ReadonlyMap<string, string>> {
  const refused = new Map<string, string>()
  if ((await whyRefused(client, '')) === '') return refused
  await inParallel(names, async (name) => {
    const why = await whyRefused(client, name)
    if (why !== '') refused.set(name, why)
  })
  return refused
}

/** '' = allowed, or there was no answer: the write itself tells. @param name '' = all of them */
async function whyRefused(client: ObjectClient, name: string): Promise<string> {
  const { group, version, plural: resource } = UPSTREAM_CLUSTERS
  const resourceAttributes = { verb: 'patch', group, version, resource, ...(name !== '' && { name }) }
  const review = {
    apiVersion: 'authorization.k8s.io/v1',
    kind: 'SelfSubjectAccessReview',
    metadata: {},
    spec: { resourceAttributes },
  }
  const answer = await client.create(SELF_ACCESS_REVIEWS, review).catch(() => undefined)
  const { allowed, reason } = recordOf(answer?.['status'])
  if (typeof allowed !== 'boolean' || allowed) return ''
  const because = textOf(reason) === '' ? '' : ` (${textOf(reason)})`
  return `you may not patch upstreamclusters there${because}`
}
