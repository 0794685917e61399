// Assembles the node groups of a management cluster from its objects, as the autoscaler sees them.

import { type CompiledSelector, compileSelector } from '../../../kube/core/selectors/compile-selector.ts'
import type { GroupFacts, HealthCheckFacts, MachineFacts } from './cluster-api-objects.ts'
import type { MachineGroup } from './evaluate-group.ts'

export interface ClusterApiObjects {
  /** MachineDeployments, MachineSets and MachinePools. */
  readonly groups: Iterable<GroupFacts>
  readonly machines: Iterable<MachineFacts>
  /** `NAMESPACE/NAME` of Clusters that are paused. */
  readonly pausedClusters: ReadonlySet<string>
  readonly healthChecks: Iterable<HealthCheckFacts>
  /** providerIDs of the workload cluster's Nodes. */
  readonly nodes: ReadonlySet<string>
}

export interface FoundGroup {
  readonly facts: GroupFacts
  readonly group: MachineGroup
  /** By uid. */
  readonly machines: ReadonlyMap<string, MachineFacts>
  /** A MachineHealthCheck that also selects its machines; '' = none. */
  readonly healthCheck: string
}

/** @param selects matches groups by label; undefined = all */
export function findGroups(objects: ClusterApiObjects, selects: CompiledSelector | undefined): readonly FoundGroup[] {
  const groups = [...objects.groups]
  const sets = bySet(groups)
  const machines = byOwner(objects.machines)
  const checks = compileChecks(objects.healthChecks)
  const deployments = new Set(groups.filter(({ kind }) => kind === 'MachineDeployment').map(({ uid }) => uid))
  return groups.flatMap((facts): FoundGroup[] => {
    const isPart = facts.kind === 'MachineSet' && deployments.has(facts.owner)
    if (isPart || facts.deleting || facts.minSize === undefined || selects?.matches(facts.labels) === false) return []
    const own = facts.kind === 'MachineDeployment' ? (sets.get(facts.uid) ?? []) : [facts]
    const found = own.flatMap(({ uid }) => machines.get(uid) ?? [])
    return [
      {
        facts,
        group: groupOf(facts, own, found, objects, facts.minSize),
        machines: new Map(found.map((machine) => [machine.uid, machine])),
        healthCheck: checks.find((check) => selectsGroup(check, facts, found))?.name ?? '',
      },
    ]
  })
}

function groupId({ kind, namespace, name }: Pick<GroupFacts, 'kind' | 'namespace' | 'name'>): string {
  return `${kind}/${namespace}/${name}`
}

function groupOf(
  facts: GroupFacts,
  sets: readonly GroupFacts[],
  machines: readonly MachineFacts[],
  { nodes, pausedClusters }: ClusterApiObjects,
  minSize: number,
): MachineGroup {
  const isPool = facts.kind === 'MachinePool'
  const registered = facts.providerIDs.filter((id) => nodes.has(id)).length
  return {
    id: groupId(facts),
    replicas: facts.replicas,
    minSize,
    paused: pausedClusters.has(`${facts.namespace}/${facts.clusterName}`) || [facts, ...sets].some((one) => one.paused),
    rollingOut: sets.filter(({ present }) => present > 0).length > 1,
    machines: isPool
      ? undefined
      : // A Node that Cluster API has not linked to its Machine yet is still a node.
        machines.map(({ state, providerID }) => ({ ...state, hasNode: state.hasNode || nodes.has(providerID) })),
    nodes: isPool ? Math.max(registered, facts.nodeRefs) : 0,
    instances: isPool ? Math.max(facts.providerIDs.length, facts.nodeRefs) : 0,
  }
}

/** MachineSets by the UID of their MachineDeployment. */
function bySet(groups: readonly GroupFacts[]): ReadonlyMap<string, readonly GroupFacts[]> {
  return byOwner(groups.filter(({ kind }) => kind === 'MachineSet'))
}

function byOwner<T extends { readonly owner: string }>(items: Iterable<T>): ReadonlyMap<string, readonly T[]> {
  const found = new Map<string, T[]>()
  for (const item of items) {
    const known = found.get(item.owner)
    if (known === undefined) found.set(item.owner, [item])
    else known.push(item)
  }
  return found
}

interface CompiledCheck extends HealthCheckFacts {
  readonly compiled: CompiledSelector
}

function compileChecks(checks: Iterable<HealthCheckFacts>): readonly CompiledCheck[] {
  return [...checks].flatMap((check) => {
    try {
      return [{ ...check, compiled: compileSelector(check.selector) }]
    } catch {
      // Cluster API selects nothing with it either.
      return []
    }
  })
}

function selectsGroup(check: CompiledCheck, facts: GroupFacts, machines: readonly MachineFacts[]): boolean {
  if (check.namespace !== facts.namespace || check.clusterName !== facts.clusterName) return false
  return check.compiled.matches(facts.machineLabels) || machines.some(({ labels }) => check.compiled.matches(labels))
}
