// Watches of a guard: the Cluster API objects in the management cluster, and the Nodes of the workload cluster. Detects first which
// versions of Cluster API are served, since those have changed over time.

import type { JsonObject } from '../../../kit/api/json/json-object.ts'
import { recordOf, textOf } from '../../../kit/api/json/object-shape.ts'
import type { Clock } from '../../../kit/api/ports.ts'
import { errorMessage } from '../../../kit/api/validation/error-message.ts'
import { foreignKind } from '../../../kube/api/kinds/foreign-kinds.ts'
import type { ObjectClient } from '../../../kube/api/object-client.ts'
import type { ResourceKind } from '../../../kube/api/resource-kind.ts'
import { StatusError } from '../../../kube/api/status.ts'
import { Informer } from '../../../kube/controllers/kernel/informer.ts'
import { type ReconcileOutcome, WorkQueue } from '../../../kube/controllers/kernel/work-queue.ts'
import {
  type GroupFacts,
  type GroupKind,
  type HealthCheckFacts,
  isPaused,
  type MachineFacts,
  readGroup,
  readHealthCheck,
  readMachine,
} from '../../core/guard/cluster-api-objects.ts'
import type { CompiledGuard } from '../../core/guard/compile-guard.ts'
import type { ClusterApiObjects } from '../../core/guard/machine-groups.ts'

/** Newest first. */
const VERSIONS = ['v1beta2', 'v1beta1'] as const
/** Delay before retrying a cluster that didn't answer; doubles. */
const FIRST_RETRY_MS = 250
const LONGEST_RETRY_MS = 10_000
const NODES = foreignKind({ group: '', version: 'v1', kind: 'Node', plural: 'nodes', namespaced: false })

const GROUP_PLURALS: Readonly<Record<GroupKind, string>> = {
  MachineDeployment: 'machinedeployments',
  MachineSet: 'machinesets',
  MachinePool: 'machinepools',
}

interface GuardedObjectsDeps {
  readonly guard: CompiledGuard
  readonly management: ObjectClient
  readonly workload: ObjectClient
  readonly clock: Pick<Clock, 'monotonic'>
  /** Called on any change. */
  onChange(): void
}

export class GuardedObjects {
  readonly #deps: GuardedObjectsDeps
  /** All informers of the management cluster. */
  readonly #managed: Informer<unknown>[] = []
  readonly #groups: Informer<GroupFacts>[] = []
  #machines: Informer<MachineFacts> | undefined
  /** By cluster: whether it is paused. */
  #clusters: Informer<boolean> | undefined
  #healthChecks: Informer<HealthCheckFacts> | undefined
  /** By Node: its provider ID. */
  readonly #nodes: Informer<string>
  #version = ''
  #fault = 'it is not known yet which version of Cluster API is served'
  readonly #begin: WorkQueue
  #stopped = false

  constructor(deps: GuardedObjectsDeps) {
    this.#deps = deps
    this.#nodes = this.#follow(deps.workload, NODES, (node) => textOf(recordOf(node['spec'])['providerID']))
    this.#begin = new WorkQueue({
      reconcile: () => this.#followServed(),
      clock: deps.clock,
      random: () => 0,
      limit: 1,
      pace: { firstBackoffMs: 2 * FIRST_RETRY_MS, longestBackoffMs: 2 * LONGEST_RETRY_MS },
    })
    this.#begin.add('')
  }

  /** Why the groups are not current; '' = they are. */
  get fault(): string {
    return [this.#fault, ...this.#managed.map(faultOf)].find((fault) => fault !== '') ?? ''
  }

  /** Why the Nodes are not known; '' = they are. */
  get nodesFault(): string {
    return faultOf(this.#nodes)
  }

  /** Kind of the groups and machines, in the served version. */
  kind(kind: GroupKind | 'Machine'): ResourceKind {
    return this.#kindOf(kind, kind === 'Machine' ? 'machines' : GROUP_PLURALS[kind], this.#version)
  }

  objects(): ClusterApiObjects {
    const clusters = [...(this.#clusters?.objects ?? [])].filter(([, paused]) => paused)
    return {
      groups: this.#groups.flatMap(({ objects }) => [...objects.values()]),
      machines: this.#machines?.objects.values() ?? [],
      pausedClusters: new Set(clusters.map(([key]) => key)),
      healthChecks: this.#healthChecks?.objects.values() ?? [],
      nodes: new Set([...this.#nodes.objects.values()].filter((id) => id !== '')),
    }
  }

  async stop(): Promise<void> {
    this.#stopped = true
    await this.#begin.stop()
    await Promise.all([this.#nodes, ...this.#managed].map((one) => one.stop()))
  }

  /** Retried until the served version is known. */
  async #followServed(): Promise<ReconcileOutcome> {
    try {
      this.#version = await this.#servedVersion()
      await this.#followAll(this.#version)
      this.#fault = ''
      return 'done'
    } catch (error) {
      this.#fault = errorMessage(error)
      return 'failed'
    } finally {
      this.#deps.onChange()
    }
  }

  /** @throws {Error} (rejects) if the cluster doesn't answer, or has no Cluster API */
  async #servedVersion(): Promise<string> {
    for (const version of VERSIONS) {
      if (await this.#isServed(this.#kindOf('MachineDeployment', 'machinedeployments', version))) return version
    }
    throw new Error(`${this.#deps.guard.group} is served in none of the versions ${VERSIONS.join(', ')}`)
  }

  async #isServed(kind: ResourceKind): Promise<boolean> {
    try {
      await this.#deps.management.currentVersion?.(kind)
      return true
    } catch (error) {
      if (error instanceof StatusError && error.code === 404) return false
      throw error
    }
  }

  async #followAll(version: string): Promise<void> {
    const { guard } = this.#deps
    const { group, policy } = guard
    const pools = this.#kindOf('MachinePool', GROUP_PLURALS.MachinePool, version)
    const checks = this.#kindOf('MachineHealthCheck', 'machinehealthchecks', version)
    const [hasPools, hasChecks] = await Promise.all([this.#isServed(pools), this.#isServed(checks)])
    if (this.#stopped) return
    for (const kind of ['MachineDeployment', 'MachineSet', ...(hasPools ? (['MachinePool'] as const) : [])] as const) {
      const row = this.#kindOf(kind, GROUP_PLURALS[kind], version)
      this.#groups.push(this.#followManaged(row, (object) => readGroup(object, kind, group)))
    }
    const isTerminal = (reason: string): boolean => policy.conditionReasons.has(reason)
    const machines = this.#kindOf('Machine', 'machines', version)
    this.#machines = this.#followManaged(machines, (object, before) => readMachine(object, group, before, isTerminal))
    const clusters = this.#kindOf('Cluster', 'clusters', version)
    this.#clusters = this.#followManaged(clusters, (object) => isPaused(object, group))
    if (hasChecks) this.#healthChecks = this.#followManaged(checks, readHealthCheck)
  }

  #followManaged<T>(kind: ResourceKind, keep: (object: JsonObject, before: T | undefined) => T): Informer<T> {
    const informer = this.#follow(this.#deps.management, kind, keep)
    this.#managed.push(informer)
    return informer
  }

  #follow<T>(
    client: ObjectClient,
    kind: ResourceKind,
    keep: (object: JsonObject, before: T | undefined) => T,
  ): Informer<T> {
    const { onChange } = this.#deps
    return new Informer({ client, kind, keep, onChange, onState: onChange })
  }

  #kindOf(kind: string, plural: string, version: string): ResourceKind {
    return foreignKind({ group: this.#deps.guard.group, version, kind, plural, namespaced: true })
  }
}

/** Why its objects are not current; '' = they are. */
function faultOf({ current, message, kind: { plural } }: Informer<unknown>): string {
  if (current) return ''
  return message === '' ? `${plural} have not been listed yet` : `${plural} cannot be watched: ${message}`
}
