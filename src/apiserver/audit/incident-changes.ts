// The changes of a write that matter in an incident: the degrade switch, revocations, and whether everything is refused;
// also what weakens them, such as shadow mode, an end time, or an exemption. Level Metadata alone records only that an object was written.

import { DEFAULT_DEGRADE_MODE } from '../../gateway/api/upstream-cluster/degrade-modes.ts'
import { parseFeatureGates } from '../../gateway/api/upstream-cluster/feature-gates.ts'
import { FEATURE_GATES_ANNOTATION } from '../../gateway/api/upstream-cluster/upstream-cluster.ts'
import type { JsonObject } from '../../kit/api/json/json-object.ts'
import { isRecord } from '../../kit/api/json/object-shape.ts'

type Changes = Readonly<Record<string, string>>

/** Annotations of the audit event. @param before, after the UpstreamCluster; undefined = it did, or does, not exist */
export function incidentChanges(before: JsonObject | undefined, after: JsonObject | undefined): Changes {
  const changes: Record<string, string> = {}
  const degrades = [degradeOf(before), degradeOf(after)] as const
  if (degrades[0].content !== degrades[1].content) {
    changes['portcullis.io/degrade'] = degrades.map(({ text }) => text).join(' -> ')
  }
  const revoked = revocationChange(revocationsOf(before), revocationsOf(after))
  if (revoked !== '') changes['portcullis.io/revoked'] = revoked
  const gates = [deniesAll(before), deniesAll(after)]
  if (gates[0] !== gates[1]) changes['portcullis.io/deny-all-requests'] = gates.join(' -> ')
  return changes
}

/** Annotation for the deletion of a collection: how many clusters in which mode, and with how many revocations. */
export function incidentDeletions(deleted: readonly JsonObject[]): Changes {
  if (deleted.length === 0) return {}
  const modes = new Map<string, number>()
  let revoked = 0
  for (const object of deleted) {
    const { mode } = degradeOf(object)
    modes.set(mode, (modes.get(mode) ?? 0) + 1)
    revoked += revocationsOf(object).size
  }
  const counts = [...modes].sort(([a], [b]) => (a < b ? -1 : 1)).map(([mode, count]) => `${count} ${mode}`)
  return { 'portcullis.io/deleted': [...counts, `${revoked} revoked`].join(', ') }
}

interface Degrade {
  readonly mode: string
  /** Text of the annotation. */
  readonly text: string
  /** Equal if only the reason differs. */
  readonly content: string
}

function degradeOf(object: JsonObject | undefined): Degrade {
  const degrade = fieldOf(specOf(object), 'degrade')
  const { mode = DEFAULT_DEGRADE_MODE, shadow, expiresAt, exempt } = isRecord(degrade) ? degrade : {}
  const exempted = Array.isArray(exempt) ? exempt : []
  const parts = [
    String(mode),
    ...(shadow === true ? ['in shadow'] : []),
    ...(typeof expiresAt === 'string' ? [`until ${expiresAt}`] : []),
    ...(exempted.length > 0 ? [`with ${exempted.length} exempt`] : []),
  ]
  const content = JSON.stringify([mode, shadow === true, expiresAt, exempted])
  return { mode: String(mode), text: parts.join(' '), content }
}

/** All revoked users and credentials. */
function revocationsOf(object: JsonObject | undefined): ReadonlySet<string> {
  const revoked = fieldOf(fieldOf(specOf(object), 'authentication'), 'revoked')
  const entries: readonly unknown[] = Array.isArray(revoked) ? revoked : []
  return new Set(
    entries.map((entry) => {
      const { user, certificateFingerprint, tokenHash } = isRecord(entry) ? entry : {}
      return JSON.stringify([user, certificateFingerprint, tokenHash])
    }),
  )
}

/** '' = unchanged. */
function revocationChange(before: ReadonlySet<string>, after: ReadonlySet<string>): string {
  const added = [...after].filter((one) => !before.has(one)).length
  const removed = [...before].filter((one) => !after.has(one)).length
  if (added === 0 && removed === 0) return ''
  // The numbers are equal when one replaces another.
  const exchange = added > 0 && removed > 0 ? ` (${added} added, ${removed} removed)` : ''
  return `${before.size} -> ${after.size}${exchange}`
}

function deniesAll(object: JsonObject | undefined): boolean {
  const text = fieldOf(fieldOf(object?.['metadata'], 'annotations'), FEATURE_GATES_ANNOTATION)
  return typeof text === 'string' && parseFeatureGates(text).enabled.has('DenyAllRequests')
}

function specOf(object: JsonObject | undefined): unknown {
  return object?.['spec']
}

function fieldOf(value: unknown, field: string): unknown {
  return isRecord(value) ? value[field] : undefined
}
