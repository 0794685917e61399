// UpstreamClusters in force as records of a last good state, with the bytes of their Secrets: the versions that are good, which need
// not be the newest objects.

import { isRecord } from '../../../api/kube/object-shape.ts'
import type { Logger, ResolvedCluster } from '../../../api/ports/ports.ts'
import type { UpstreamCluster } from '../../../api/upstream-cluster/upstream-cluster.ts'
import type { LastGoodKeeper } from '../../last-good/keeper.ts'
import type { LastGoodClusters } from './objects-source.ts'

const KIND = 'UpstreamCluster'

export interface KeptClustersOptions {
  readonly keeper: LastGoodKeeper
  /** Milliseconds that a start still waits for the API server. */
  readonly waitMs: () => number
  readonly log: Logger
  /** Called with whether the API server answers. */
  onCurrent(current: boolean): void
}

export function keptClusters({ keeper, waitMs, log, onCurrent }: KeptClustersOptions): LastGoodClusters {
  let restored: ReadonlyMap<string, ResolvedCluster> | undefined
  return {
    get waitMs() {
      return waitMs()
    },
    restore: () => {
      const state = keeper.restore()
      if (state === undefined) return undefined
      restored = new Map(state.records.flatMap(readCluster).map((one) => [one.object.metadata.name, one]))
      keeper.serves(state.timeMs)
      return restored
    },
    keep: (clusters, changed) => {
      if (restored !== undefined && isOfAnother(restored, clusters)) {
        log.warn('the API server has other objects of the same names than the one of the last good state', {
          fix: 'check that the kubeconfig names the right cluster; what it has is in force now',
        })
      }
      restored = undefined
      for (const name of changed ?? new Set([...keeper.names(), ...clusters.keys()])) {
        const version = clusters.get(name)
        if (version === undefined) keeper.delete(name)
        else keeper.put(name, { kind: KIND, object: version.object, revision: version.revision })
      }
    },
    current: (current) => {
      keeper.current(current)
      onCurrent(current)
    },
  }
}

/** The seal says that this program has written it: nothing but the shape is looked at. */
function readCluster(record: unknown): readonly ResolvedCluster[] {
  if (!isRecord(record) || record['kind'] !== KIND || !isRecord(record['object'])) return []
  return [{ object: record['object'] as unknown as UpstreamCluster, revision: String(record['revision']) }]
}

/** Whether there are objects of the same names, and none of them is the same. */
function isOfAnother(
  restored: ReadonlyMap<string, ResolvedCluster>,
  clusters: ReadonlyMap<string, ResolvedCluster>,
): boolean {
  let others = 0
  for (const [name, { object }] of restored) {
    const now = clusters.get(name)?.object.metadata.uid
    if (now === undefined || object.metadata.uid === undefined) continue
    if (now === object.metadata.uid) return false
    others++
  }
  return others > 0
}
