// How many pods of a service are available over several clusters, as the pods themselves say: sampled from the apiservers,
// past any gateway, by an administrator.

import { setTimeout as sleep } from 'node:timers/promises'
import type { TestCluster } from './cluster.ts'

export interface AvailabilityOptions {
  readonly namespace: string
  readonly labelSelector: string
  /** What must never be fallen short of. */
  readonly minAvailable: number
}

export interface AvailabilityWatch {
  /** The lowest number seen, and how often there were fewer than minAvailable. */
  readonly lowest: number
  readonly samples: number
  readonly shortfalls: readonly string[]
  stop(): Promise<void>
}

interface Pod {
  readonly metadata: { readonly name: string; readonly deletionTimestamp?: string }
  readonly status: { readonly conditions?: readonly { readonly type: string; readonly status: string }[] }
}

const PERIOD_MS = 10

/** Ready and not being deleted. */
export function isAvailable({ metadata, status }: Pod): boolean {
  if (metadata.deletionTimestamp !== undefined) return false
  return (status.conditions ?? []).some((condition) => condition.type === 'Ready' && condition.status === 'True')
}

export async function availablePods(cluster: TestCluster, namespace: string, labelSelector: string): Promise<Pod[]> {
  const path = `/api/v1/namespaces/${namespace}/pods?labelSelector=${encodeURIComponent(labelSelector)}`
  const { items = [] } = (await cluster.request(path)).json()
  return (items as Pod[]).filter(isAvailable)
}

/**
 * Looks until it is stopped. The clusters are asked one after the other, so a pod that comes in the first while another goes
 * in the second may look like one too few; the first is therefore asked twice, and the better answer counts.
 */
export function watchAvailability(clusters: readonly TestCluster[], options: AvailabilityOptions): AvailabilityWatch {
  const { namespace, labelSelector, minAvailable } = options
  const shortfalls: string[] = []
  let lowest = Number.POSITIVE_INFINITY
  let samples = 0
  let stopped = false
  const count = async (cluster: TestCluster): Promise<number> =>
    (await availablePods(cluster, namespace, labelSelector)).length
  const look = async (): Promise<void> => {
    const before = await Promise.all(clusters.map(count))
    const after = await Promise.all(clusters.map(count))
    const sum = before.reduce((total, number, i) => total + Math.max(number, after[i] ?? 0), 0)
    samples++
    lowest = Math.min(lowest, sum)
    if (sum < minAvailable) shortfalls.push(`${sum} of ${minAvailable}: ${before.join('+')} then ${after.join('+')}`)
  }
  const running = (async () => {
    while (!stopped) {
      await look()
      await sleep(PERIOD_MS)
    }
  })()
  return {
    get lowest() {
      return lowest
    },
    get samples() {
      return samples
    },
    shortfalls,
    async stop() {
      stopped = true
      await running
    },
  }
}
