// Checks one UpstreamCluster with the secrets it refers to, whatever its source.

import { createHash } from 'node:crypto'
import type { FieldError } from '../../../../kit/api/json/field-error.ts'
import { isRecord } from '../../../../kit/api/json/object-shape.ts'
import type { PemChecks } from '../../../../kit/api/validation/pem-checks.ts'
import type { ResolvedCluster } from '../../../api/resource-source.ts'
import {
  type ClusterCheckOptions,
  checkUpstreamCluster,
  normalizeUpstreamCluster,
} from '../../../api/upstream-cluster/checks.ts'
import type { UpstreamCluster } from '../../../api/upstream-cluster/upstream-cluster.ts'
import type { Resolved } from '../../secrets/secret-references.ts'

export interface CheckedCluster {
  /** Equal for two resolutions of one object exactly if they yielded the same bytes. */
  readonly secrets: string
  /** Problems of the resolved object, excluding those of resolving references. */
  readonly problems: readonly FieldError[]
  /** undefined if there are errors. */
  readonly good: ResolvedCluster | undefined
}

export function secretsOf({ origins, bytes }: Resolved): string {
  return [...origins.keys(), ...bytes].join(' ')
}

/** Slow: parses keys and certificates. Never throws. */
export function checkCluster(resolved: Resolved, pem: PemChecks, options?: ClusterCheckOptions): CheckedCluster {
  const { object, origins, secrets } = resolved
  const problems = checkUpstreamCluster(object, pem, options).map((problem) => {
    return { ...problem, path: origins.get(problem.path) ?? problem.path }
  })
  const isGood = problems.every((problem) => problem.severity !== 'error')
  return {
    secrets: secretsOf(resolved),
    problems,
    good: isGood ? resolvedCluster(object, secrets, options) : undefined,
  }
}

function resolvedCluster(object: unknown, secrets: readonly string[], options?: ClusterCheckOptions): ResolvedCluster {
  const cluster = normalizeUpstreamCluster(object, options)
  return { object: cluster, revision: revisionOf(cluster), secrets }
}

function revisionOf({ metadata, spec }: UpstreamCluster): string {
  const { name, labels, annotations } = metadata
  const content = JSON.stringify({ name, labels, annotations, spec }, sortedKeys)
  return createHash('sha256').update(content).digest('hex').slice(0, 16)
}

/** For JSON.stringify: makes the order of fields irrelevant. */
function sortedKeys(_key: string, value: unknown): unknown {
  if (!isRecord(value)) return value
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)))
}
