// UpstreamClusters in force as records of a last good state, with the bytes of their Secrets: the good versions, which may not be the newest objects.

import { isRecord } from '../../../../kit/api/json/object-shape.ts'
import type { Logger } from '../../../../kit/api/ports.ts'
import type { ResolvedCluster } from '../../../api/resource-source.ts'
import type { UpstreamCluster } from '../../../api/upstream-cluster/upstream-cluster.ts'
import type { LastGoodKeeper } from '../../last-good/keeper.ts'
import type { LastGoodClusters } from './objects-source.ts'

const KIND = 'UpstreamCluster'

interface KeptClustersOptions {
  readonly keeper: LastGoodKeeper
  /** Milliseconds that a start still waits for the API server. */
  readonly waitMs: () => number
  readonly log: Logger
  /** Reports whether the API server responds. */
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
        log.warn('the API server has none of the UpstreamClusters of the last good state, which are served no more', {
          fix: 'check that the kubeconfig names the right cluster; its objects are in force now',
        })
      }
      restored = undefined
      for (const name of changed ?? new Set([...keeper.names(), ...clusters.keys()])) {
        const version = clusters.get(name)
        if (version === undefined) keeper.delete(name)
        else keeper.put(name, { kind: KIND, ...version })
      }
    },
    current: (current) => {
      keeper.current(current)
      onCurrent(current)
    },
  }
}

/** The seal proves that this program wrote it: only the shape is checked. */
function readCluster(record: unknown): readonly ResolvedCluster[] {
  if (!isRecord(record) || record['kind'] !== KIND || !isRecord(record['object'])) return []
  const { object, revision, secrets } = record
  const names = Array.isArray(secrets) ? { secrets: secrets.map(String) } : {}
  return [{ object: object as unknown as UpstreamCluster, revision: String(revision), ...names }]
}

/** Whether nothing is left of what was served: another API server, or one that has lost its objects. */
function isOfAnother(
  restored: ReadonlyMap<string, ResolvedCluster>,
  clusters: ReadonlyMap<string, ResolvedCluster>,
): boolean {
  for (const [name, { object }] of restored) {
    const now = clusters.get(name)?.object.metadata
    if (now !== undefined && (now.uid === undefined || now.uid === object.metadata.uid)) return false
  }
  return restored.size > 0
}
