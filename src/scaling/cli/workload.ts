// The workload to be scaled, as named on the command line, and what decides about its pods.

import type { ScalableKind } from '../../gateway/core/request/scale-target.ts'
import type { JsonObject } from '../../kit/api/json/json-object.ts'
import { recordOf, textOf } from '../../kit/api/json/object-shape.ts'
import { UserError } from '../../kit/api/validation/field-errors.ts'
import { isObjectName } from '../../kit/api/validation/name-syntax.ts'
import {
  DEPLOYMENTS,
  PODS,
  REPLICA_SETS,
  REPLICATION_CONTROLLERS,
  STATEFUL_SETS,
} from '../../kube/api/kinds/foreign-kinds.ts'
import type { ResourceKind } from '../../kube/api/resource-kind.ts'
import { StatusError } from '../../kube/api/status.ts'
import type { ObjectReads } from '../../protection/cli/pod.ts'
import { podSelectors } from '../core/rank/replica-set-pods.ts'

export interface Target {
  readonly kind: ScalableKind
  readonly resource: ResourceKind
  /** As the cluster has it. */
  readonly namespace: string
  /** The namespace as it was asked for: a federated cluster has other names. */
  readonly shown: string
  readonly name: string
}

export interface ReadWorkload {
  readonly workload: JsonObject
  /** All ReplicaSets of the namespace; for a ReplicationController its own kind. */
  readonly replicaSets: readonly JsonObject[]
  readonly pods: readonly JsonObject[]
}

/** Rights for the message if they are missing. */
export const NEEDS = 'get of the workload, list of pods and of replicasets'

interface Scalable {
  readonly kind: ScalableKind
  readonly resource: ResourceKind
  /** Kubernetes' short name. */
  readonly short: string
}

const KINDS: readonly Scalable[] = [
  { kind: 'Deployment', resource: DEPLOYMENTS, short: 'deploy' },
  { kind: 'ReplicaSet', resource: REPLICA_SETS, short: 'rs' },
  { kind: 'StatefulSet', resource: STATEFUL_SETS, short: 'sts' },
  { kind: 'ReplicationController', resource: REPLICATION_CONTROLLERS, short: 'rc' },
]

/** @param text `deployment/web`, with any name that kubectl accepts for the kind. @throws {UserError} */
export function parseTarget(text: string, namespace: string): Target {
  const [type = '', name = '', ...more] = text.split('/')
  const wanted = type.toLowerCase()
  const known = KINDS.find(({ resource: { singular, plural, group }, short }) => {
    const names = [singular, plural, short]
    return [...names, ...names.map((one) => `${one}.${group}`)].includes(wanted)
  })
  if (name === '' || more.length > 0) {
    throw new UserError(`${JSON.stringify(text)} is not TYPE/NAME`, 'write for example deployment/web')
  }
  if (known === undefined) {
    const types = KINDS.map(({ resource }) => resource.singular).join(', ')
    throw new UserError(`${JSON.stringify(type)} is not a type that scale why knows`, `write one of ${types}`)
  }
  if (!isObjectName(name) || !isObjectName(namespace)) {
    throw new UserError(`${namespace}/${name} must be valid names`, 'see -n and the name behind the slash')
  }
  return { kind: known.kind, resource: known.resource, namespace, shown: namespace, name }
}

/** @throws {UserError} if there is no such workload */
export async function readWorkload(client: ObjectReads, target: Target): Promise<ReadWorkload> {
  const { kind, namespace } = target
  const workload = await getWorkload(client, target)
  const resource = kind === 'ReplicationController' ? REPLICATION_CONTROLLERS : REPLICA_SETS
  const replicaSets = kind === 'StatefulSet' ? [] : (await client.list(resource, namespace)).items
  const pods = await podsOf(client, namespace, podSelectors(kind, workload, replicaSets))
  return { workload, replicaSets, pods }
}

async function getWorkload(client: ObjectReads, { resource, namespace, shown, name }: Target): Promise<JsonObject> {
  try {
    return await client.get(resource, { namespace, name })
  } catch (error) {
    if (!(error instanceof StatusError) || error.code !== 404 || error.status.details?.name !== name) throw error
    const known = (await client.list(resource, namespace)).items.map(({ metadata }) =>
      textOf(recordOf(metadata)['name']),
    )
    const fix =
      known.length === 0
        ? `there is none in namespace ${shown}; give another one with -n`
        : `known in namespace ${shown}: ${known.sort().join(', ')}; give another one with -n`
    throw new UserError(`there is no ${resource.singular} ${shown}/${name}`, fix)
  }
}

/** Pods that any of them selects, each once. */
async function podsOf(
  client: ObjectReads,
  namespace: string,
  selectors: readonly string[],
): Promise<readonly JsonObject[]> {
  const pods = new Map<string, JsonObject>()
  for (const selector of selectors) {
    for (const pod of (await client.list(PODS, namespace, selector)).items) {
      pods.set(textOf(recordOf(pod['metadata'])['uid']), pod)
    }
  }
  return [...pods.values()]
}
