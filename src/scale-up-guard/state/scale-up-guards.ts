// Lookup of node groups in backoff, for the request path of a thread. Almost always empty.

import type { RequestInfo } from '../../gateway/core/request/request-info.ts'
import type { GroupBackoff } from '../core/guard/check-raise.ts'
import type { GuardInForce } from '../core/guard/guards-in-force.ts'

export interface GuardedRaise {
  readonly guard: string
  readonly users: ReadonlySet<string>
  readonly shadow: boolean
  readonly backoff: GroupBackoff
}

const PLURALS: ReadonlyMap<string, string> = new Map([
  ['MachineDeployment', 'machinedeployments'],
  ['MachineSet', 'machinesets'],
  ['MachinePool', 'machinepools'],
])

export class ScaleUpGuardTable {
  /** By cluster, then by group. */
  #clusters: ReadonlyMap<string, ReadonlyMap<string, GuardedRaise>> = new Map()

  /** Clusters with a group in backoff. */
  get size(): number {
    return this.#clusters.size
  }

  /** Replaces all guards in force. */
  replace(guards: readonly GuardInForce[]): void {
    const clusters = new Map<string, Map<string, GuardedRaise>>()
    for (const { guard, cluster, apiGroup, users, shadow, backoffs } of guards) {
      const groups = clusters.get(cluster) ?? new Map<string, GuardedRaise>()
      clusters.set(cluster, groups)
      const rest = { guard, users: new Set(users), shadow }
      for (const backoff of backoffs) {
        const [kind = '', namespace = '', name = ''] = backoff.group.split('/')
        const key = keyOf(apiGroup, PLURALS.get(kind) ?? '', namespace, name)
        const raise = { ...rest, backoff }
        if (isStricter(raise, groups.get(key))) groups.set(key, raise)
      }
    }
    this.#clusters = clusters
  }

  /** @returns undefined = the request is not for a group in backoff */
  find(cluster: string, info: RequestInfo, nowMs: number): GuardedRaise | undefined {
    const groups = this.#clusters.get(cluster)
    if (groups === undefined || (info.verb !== 'update' && info.verb !== 'patch')) return undefined
    const raise = groups.get(keyOf(info.apiGroup, info.resource, info.namespace, info.name))
    return raise === undefined || raise.backoff.untilMs < nowMs ? undefined : raise
  }
}

/** Between two guards of one group: not in shadow mode first, then the longer backoff. */
function isStricter(a: GuardedRaise, b: GuardedRaise | undefined): boolean {
  if (b === undefined) return true
  return a.shadow === b.shadow ? a.backoff.untilMs > b.backoff.untilMs : !a.shadow
}

function keyOf(apiGroup: string, resource: string, namespace: string, name: string): string {
  return `${apiGroup}/${resource}/${namespace}/${name}`
}
