// What a guard watches: the objects of Cluster API in the management cluster, and the Nodes of the workload cluster. Which versions of
// Cluster API are served is asked at the beginning: it has changed its own.

import { foreignKind } from '../../api/kinds/foreign-kinds.ts'
import { type JsonObject, nameOf, namespaceOf } from '../../api/kube/json-object.ts'
import { recordOf, textOf } from '../../api/kube/object-shape.ts'
import { StatusError } from '../../api/kube/status.ts'
import type { Following, ObjectClient } from '../../api/ports/object-client.ts'
import type { ResourceKind } from '../../api/ports/resource-kind.ts'
import { errorMessage } from '../../api/validation/error-message.ts'
import {
  type GroupFacts,
  type GroupKind,
  type HealthCheckFacts,
  isPaused,
  type MachineFacts,
  readGroup,
  readHealthCheck,
  readMachine,
} from '../../core/scale/scale-up-guard/cluster-api-objects.ts'
import type { CompiledGuard } from '../../core/scale/scale-up-guard/compile-guard.ts'
import type { ClusterApiObjects } from '../../core/scale/scale-up-guard/machine-groups.ts'

/** The newest first. */
const VERSIONS = ['v1beta2', 'v1beta1'] as const
/** Until a cluster that did not answer is asked again; doubles. */
const FIRST_RETRY_MS = 250
const LONGEST_RETRY_MS = 10_000
const NODES = foreignKind({ group: '', version: 'v1', kind: 'Node', plural: 'nodes', namespaced: false })

const GROUP_PLURALS: Readonly<Record<GroupKind, string>> = {
  MachineDeployment: 'machinedeployments',
  MachineSet: 'machinesets',
  MachinePool: 'machinepools',
}

export interface GuardedObjectsDeps {
  readonly guard: CompiledGuard
  readonly management: ObjectClient
  readonly workload: ObjectClient
  /** Something of it has changed. */
  onChange(): void
}

/** What is followed of one kind. */
interface Watched<T> {
  readonly known: Map<string, T>
  /** Why it is not current; '' = it is. */
  fault: string
}

export class GuardedObjects {
  readonly #deps: GuardedObjectsDeps
  readonly #following: Following[] = []
  readonly #watched: Watched<unknown>[] = []
  readonly #groups: Record<GroupKind, Watched<GroupFacts>> = {
    MachineDeployment: nothing(),
    MachineSet: nothing(),
    MachinePool: nothing(),
  }
  readonly #machines: Watched<MachineFacts> = nothing()
  /** Paused ones. */
  readonly #clusters: Watched<boolean> = nothing()
  readonly #healthChecks: Watched<HealthCheckFacts> = nothing()
  readonly #nodes: Watched<string> = nothing()
  #version = ''
  #fault = 'it is not known yet which version of Cluster API is served'
  #running: Promise<void>
  #retry: NodeJS.Timeout | undefined
  #retryMs = FIRST_RETRY_MS
  #stopped = false

  constructor(deps: GuardedObjectsDeps) {
    this.#deps = deps
    this.#follow(deps.workload, NODES, this.#nodes, (node) => textOf(recordOf(node['spec'])['providerID']), sameText)
    this.#running = this.#begin()
  }

  /** Why the groups are not known as they are; '' = they are. */
  get fault(): string {
    return this.#fault !== '' ? this.#fault : (this.#watched.find(({ fault }) => fault !== '')?.fault ?? '')
  }

  /** Why the Nodes are not known; '' = they are. */
  get nodesFault(): string {
    return this.#nodes.fault
  }

  /** Of the groups and machines. */
  kind(kind: GroupKind | 'Machine'): ResourceKind {
    return this.#kindOf(kind, kind === 'Machine' ? 'machines' : GROUP_PLURALS[kind], this.#version)
  }

  objects(): ClusterApiObjects {
    const clusters = [...this.#clusters.known].filter(([, paused]) => paused)
    return {
      groups: Object.values(this.#groups).flatMap(({ known }) => [...known.values()]),
      machines: this.#machines.known.values(),
      pausedClusters: new Set(clusters.map(([key]) => key)),
      healthChecks: this.#healthChecks.known.values(),
      nodes: new Set([...this.#nodes.known.values()].filter((id) => id !== '')),
    }
  }

  async stop(): Promise<void> {
    this.#stopped = true
    clearTimeout(this.#retry)
    await this.#running
    await Promise.all(this.#following.map((one) => one.stop()))
  }

  /** Again and again, until it is known what is served. Never rejects. */
  async #begin(): Promise<void> {
    try {
      this.#version = await this.#servedVersion()
      await this.#followAll(this.#version)
      this.#fault = ''
    } catch (error) {
      this.#fault = errorMessage(error)
      if (this.#stopped) return
      this.#retry = setTimeout(() => {
        this.#running = this.#begin()
      }, this.#retryMs)
      this.#retryMs = Math.min(2 * this.#retryMs, LONGEST_RETRY_MS)
      this.#retry.unref()
    }
    this.#deps.onChange()
  }

  /** @throws {Error} (rejects) when the cluster does not answer, or has no Cluster API */
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
    const { management, guard } = this.#deps
    const { group, policy } = guard
    const pools = this.#kindOf('MachinePool', GROUP_PLURALS.MachinePool, version)
    const checks = this.#kindOf('MachineHealthCheck', 'machinehealthchecks', version)
    const [hasPools, hasChecks] = await Promise.all([this.#isServed(pools), this.#isServed(checks)])
    if (this.#stopped) return
    for (const kind of ['MachineDeployment', 'MachineSet', ...(hasPools ? (['MachinePool'] as const) : [])] as const) {
      const row = this.#kindOf(kind, GROUP_PLURALS[kind], version)
      this.#followManaged(management, row, this.#groups[kind], (object) => readGroup(object, kind, group))
    }
    const isTerminal = (reason: string): boolean => policy.conditionReasons.has(reason)
    const machines = this.#kindOf('Machine', 'machines', version)
    this.#followManaged(management, machines, this.#machines, (object, before) =>
      readMachine(object, group, before, isTerminal),
    )
    const clusters = this.#kindOf('Cluster', 'clusters', version)
    this.#followManaged(management, clusters, this.#clusters, (object) => isPaused(object, group))
    if (hasChecks) this.#followManaged(management, checks, this.#healthChecks, readHealthCheck)
  }

  #followManaged<T>(
    client: ObjectClient,
    kind: ResourceKind,
    watched: Watched<T>,
    read: (object: JsonObject, before: T | undefined) => T,
  ): void {
    this.#watched.push(watched)
    this.#follow(client, kind, watched, read, () => false)
  }

  #follow<T>(
    client: ObjectClient,
    kind: ResourceKind,
    watched: Watched<T>,
    read: (object: JsonObject, before: T | undefined) => T,
    same: (a: T, b: T) => boolean,
  ): void {
    const { onChange } = this.#deps
    watched.fault = `${kind.plural} have not been listed yet`
    const { known } = watched
    const following = client.follow(kind, '', {
      onReplace: (objects) => {
        const found = new Map(objects.map((object) => [keyOf(object), read(object, known.get(keyOf(object)))]))
        known.clear()
        for (const [key, value] of found) known.set(key, value)
        onChange()
      },
      onChange: (type, object) => {
        const key = keyOf(object)
        const before = known.get(key)
        if (type === 'DELETED') known.delete(key)
        else {
          const value = read(object, before)
          known.set(key, value)
          if (before !== undefined && same(before, value)) return
        }
        onChange()
      },
      onState: (current, message) => {
        watched.fault = current ? '' : `${kind.plural} cannot be watched: ${message || 'no answer'}`
        onChange()
      },
    })
    this.#following.push(following)
  }

  #kindOf(kind: string, plural: string, version: string): ResourceKind {
    return foreignKind({ group: this.#deps.guard.group, version, kind, plural, namespaced: true })
  }
}

function nothing<T>(): Watched<T> {
  return { known: new Map(), fault: '' }
}

function keyOf(object: JsonObject): string {
  return `${namespaceOf(object)}/${nameOf(object)}`
}

function sameText(a: string, b: string): boolean {
  return a === b
}
