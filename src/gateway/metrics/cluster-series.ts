// Metrics of what the clusters in force say, made at a scrape: the degrade mode, the sizes of limits, and a hash of all objects.

import { createHash } from 'node:crypto'
import type { CompiledCluster } from '../core/cluster/compiled-cluster.ts'
import { effectiveMode } from '../core/policy/degrade.ts'
import { CONFIG_HASH, DEGRADE_EXPIRATION, DEGRADE_MODE, FLOW_LIMIT } from './descriptors.ts'
import type { Exposition } from './exposition.ts'

/** Bytes of the hash: a number that a double holds exactly. */
const HASH_BYTES = 6

/** @param nowMs wall clock */
export function exposeClusters(into: Exposition, clusters: Iterable<CompiledCluster>, nowMs: number): void {
  const revisions: string[] = []
  for (const { name, revision, degrade, schemas } of clusters) {
    const mode = effectiveMode(degrade, nowMs)
    into.addMetric(DEGRADE_MODE, 1, name, mode, String(degrade.shadow))
    if (mode !== 'Off') into.addMetric(DEGRADE_EXPIRATION, degrade.expiresAtMs / 1000, name)
    for (const { name: schema, kind, max, perUser } of schemas) {
      // Of a limit for each user there is no sum that could be full.
      if (kind === 'maxRequestsInflight' && !perUser) into.addMetric(FLOW_LIMIT, max, name, schema)
    }
    // Behind the first space stand addresses, which each replica looks up by itself.
    revisions.push(`${name} ${revision.split(' ')[0] ?? ''}`)
  }
  const digest = createHash('sha256')
    .update(revisions.sort((a, b) => (a < b ? -1 : 1)).join('\n'))
    .digest()
  into.addMetric(CONFIG_HASH, digest.readUIntBE(0, HASH_BYTES))
}
