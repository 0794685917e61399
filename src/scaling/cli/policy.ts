// Evaluates ScaleDownPolicies for a scale-down, and the configuration of the controller, as the gateway does, but with the rights of the
// caller.

import {
  CONTROLLER_MANAGER_SCHEMA,
  type ControllerManager,
} from '../../gateway/api/upstream-cluster/controller-manager.ts'
import { UPSTREAM_CLUSTERS } from '../../gateway/api/upstream-cluster-kind.ts'
import { type JsonObject, mapOf, nameOf } from '../../kit/api/json/json-object.ts'
import { complete } from '../../kit/api/json/json-schema.ts'
import { isRecord, recordOf, textOf } from '../../kit/api/json/object-shape.ts'
import { errorMessage } from '../../kit/api/validation/error-message.ts'
import type { ObjectClient } from '../../kube/api/object-client.ts'
import { StatusError } from '../../kube/api/status.ts'
import type { ObjectReads } from '../../protection/cli/pod.ts'
import { SCALE_DOWN_POLICIES } from '../api/scale-down-policy-kind.ts'
import { type ClusterReads, UnavailableError } from '../core/victim-choice/cluster-reads.ts'
import { COSTS_ARE_OFF, type Costs, findVictims, scaledPods } from '../core/victim-choice/find-victims.ts'
import { type CompiledScaleDownPolicy, readScaleDownPolicy } from '../core/victim-choice/policy.ts'
import { ScaleDownPolicies } from '../state/scale-down-policies.ts'
import type { ReadWorkload, Target } from './workload.ts'

/** What applies by the UpstreamCluster and the ScaleDownPolicies of the namespace. */
export interface Steering {
  /** The UpstreamCluster; '' = unknown, and no policy applies. */
  readonly upstream: string
  readonly controller: ControllerManager
  readonly policies: ScaleDownPolicies
  /** Complete sentences without a full stop. */
  readonly notes: readonly string[]
}

interface Steered {
  readonly costs: Costs
  readonly notes: readonly string[]
}

/** Victims named per note. */
const MAX_NAMED = 20

export function unsteered(notes: readonly string[]): Steering {
  return { upstream: '', controller: {}, policies: new ScaleDownPolicies(), notes }
}

export async function readSteering(client: ObjectClient, upstream: string, namespace: string): Promise<Steering> {
  if (upstream === '') return unsteered([])
  const object = await client.get(UPSTREAM_CLUSTERS, { namespace: '', name: upstream })
  const policies = new ScaleDownPolicies()
  const notes: string[] = []
  try {
    const { items } = await client.list(SCALE_DOWN_POLICIES, namespace)
    policies.replace(items.flatMap(compiled))
  } catch (error) {
    // An API server without the kind has no policy either.
    if (!(error instanceof StatusError && error.code === 404)) {
      const why = errorMessage(error)
      notes.push(`ScaleDownPolicies cannot be read (${why}): if one selects these pods, other pods may be deleted`)
    }
  }
  return { upstream, controller: controllerOf(object), policies, notes }
}

function compiled(object: JsonObject): readonly CompiledScaleDownPolicy[] {
  const read = readScaleDownPolicy(object)
  return read.kind === 'policy' ? [read.policy] : []
}

function controllerOf(object: JsonObject): ControllerManager {
  const given = recordOf(object['spec'])['controllerManager']
  return complete(CONTROLLER_MANAGER_SCHEMA, isRecord(given) ? (given as ControllerManager) : {})
}

/** @param worker the cluster that has the workload */
export async function steer(
  worker: ObjectReads,
  { upstream, controller, policies }: Steering,
  { kind, namespace }: Target,
  { workload, replicaSets, pods }: ReadWorkload,
  replicas: number,
): Promise<Steered> {
  const labels = mapOf(recordOf(recordOf(workload['spec'])['template']), 'labels')
  const policy = upstream === '' ? undefined : policies.match(upstream, namespace, labels)
  if (policy === undefined) return { costs: 'unchanged', notes: [] }
  const name = `ScaleDownPolicy ${namespace}/${policy.name}`
  try {
    const found =
      controller.podDeletionCost === false ? COSTS_ARE_OFF : scaledPods({ kind, workload, replicaSets, pods }, replicas)
    if ('unsteerable' in found) {
      return { costs: 'unchanged', notes: [`${name} chooses nothing: ${found.unsteerable}`] }
    }
    if (found.count <= 0) return { costs: 'unchanged', notes: [] }
    const choice = await findVictims(new ClientReads(worker), found, policy, controller)
    const { victims } = choice
    const named = victims.slice(0, MAX_NAMED).map(nameOf).join(', ')
    const more = victims.length > MAX_NAMED ? ` and ${victims.length - MAX_NAMED} more` : ''
    const chosen = victims.length === 0 ? 'nothing' : `${named}${more}`
    if (policy.shadow) return { costs: 'unchanged', notes: [`${name} is in shadow mode: it would choose ${chosen}`] }
    const past = 'a write that does not go through the gateway is not steered'
    return { costs: choice, notes: [`${name} chooses ${chosen}; ${past}`] }
  } catch (error) {
    if (!(error instanceof UnavailableError)) throw error
    if (policy.shadow) return { costs: 'unchanged', notes: [] }
    return {
      costs: 'open',
      notes: [`${name} chooses, and what its choice depends on cannot be read here: ${error.message}`],
    }
  }
}

const PAGE_SIZE = 500

/** Reads for choosing victims, with the caller's credential. */
class ClientReads implements ClusterReads {
  readonly #client: ObjectReads

  constructor(client: ObjectReads) {
    this.#client = client
  }

  async get(path: string): Promise<JsonObject | undefined> {
    try {
      return await this.#read(path)
    } catch (error) {
      if (error instanceof StatusError && error.code === 404) return undefined
      throw unavailable(error)
    }
  }

  #read(path: string): Promise<JsonObject> {
    if (this.#client.read === undefined)
      throw new UnavailableError('through a federated cluster, only the workload is read')
    return this.#client.read(path)
  }

  async list(path: string, query: string, most: number): Promise<readonly JsonObject[]> {
    const found: JsonObject[] = []
    let next = ''
    do {
      const more = next === '' ? '' : `&continue=${encodeURIComponent(next)}`
      const page = await this.#read(`${path}?limit=${PAGE_SIZE}&${query}${more}`).catch((error: unknown) => {
        throw unavailable(error)
      })
      const { items, metadata } = page
      for (const item of Array.isArray(items) ? (items as readonly unknown[]) : []) if (isRecord(item)) found.push(item)
      next = textOf(recordOf(metadata)['continue'])
      if (found.length > most || (found.length === most && next !== '')) {
        throw new UnavailableError(`there are more than ${most} at ${path}`)
      }
    } while (next !== '')
    return found
  }
}

function unavailable(error: unknown): UnavailableError {
  return error instanceof UnavailableError ? error : new UnavailableError(errorMessage(error))
}
