// Metrics derived from the clusters in force at each scrape: the degrade mode, the sizes of limits, and a hash of all objects.

import { createHash } from 'node:crypto'
import type { CompiledCluster } from '../core/cluster/compiled-cluster.ts'
import { effectiveMode } from '../core/policy/degrade.ts'
import { CONFIG_HASH, DEGRADE_EXPIRATION, DEGRADE_MODE, FLOW_LIMIT } from './descriptors.ts'
import type { Exposition } from './exposition.ts'

/** Hash bytes: few enough that a double holds it exactly. */
const HASH_BYTES = 6

/** @param nowMs wall clock */
export function exposeClusters(into: Exposition, clusters: Iterable<CompiledCluster>, nowMs: number): void {
  const revisions: string[] = []
  for (const { name, revision, degrade, schemas } of clusters) {
    const mode = effectiveMode(degrade, nowMs)
    into.addMetric(DEGRADE_MODE, 1, name, mode, String(degrade.shadow))
    if (mode !== 'Off') into.addMetric(DEGRADE_EXPIRATION, degrade.expiresAtMs / 1000, name)
    for (const { name: schema, kind, max, perUser } of schemas) {
      // A per-user limit has no total that could be full.
      if (kind === 'maxRequestsInflight' && !perUser) into.addMetric(FLOW_LIMIT, max, name, schema)
    }
    // Addresses follow the first space; each replica looks them up itself.
    revisions.push(`${name} ${revision.split(' ')[0] ?? ''}`)
  }
  const digest = createHash('sha256')
    .update(revisions.sort((a, b) => (a < b ? -1 : 1)).join('\n'))
    .digest()
  into.addMetric(CONFIG_HASH, digest.readUIntBE(0, HASH_BYTES))
}
