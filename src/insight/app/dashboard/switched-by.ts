// Who set a degrade mode, and when: on this machine, or else by the object's field manager.

import type { ResolvedCluster } from '../../../gateway/api/resource-source.ts'
import { isRecord } from '../../../kit/api/json/object-shape.ts'

export interface SwitchedBy {
  /** '' = unknown. */
  readonly by: string
  /** Milliseconds since the epoch; 0 = unknown. */
  readonly since: number
}

/** Who has set it on this machine; `at` is RFC 3339. */
export interface SwitchedHere {
  readonly by: string
  readonly at: string
}

export function switchedBy(local: SwitchedHere | undefined, resolved: ResolvedCluster | undefined): SwitchedBy {
  if (local !== undefined) return { by: `${local.by} on this machine`, since: millisOf(local.at) }
  return modeOwner(resolved?.object.metadata) ?? { by: '', since: 0 }
}

/** The manager of spec.degrade.mode in metadata.managedFields; the latest of several. */
function modeOwner(metadata: unknown): SwitchedBy | undefined {
  const entries: unknown = isRecord(metadata) ? metadata['managedFields'] : undefined
  if (!Array.isArray(entries)) return undefined
  const owners = entries.flatMap((entry: unknown): SwitchedBy[] => {
    if (!isRecord(entry) || !owns(entry['fieldsV1'])) return []
    return [{ by: String(entry['manager'] ?? ''), since: millisOf(entry['time']) }]
  })
  return owners.sort((a, b) => b.since - a.since)[0]
}

function owns(fields: unknown): boolean {
  const spec = isRecord(fields) ? fields['f:spec'] : undefined
  const degrade = isRecord(spec) ? spec['f:degrade'] : undefined
  return isRecord(degrade) && 'f:mode' in degrade
}

function millisOf(time: unknown): number {
  const ms = typeof time === 'string' ? Date.parse(time) : Number.NaN
  return Number.isNaN(ms) ? 0 : ms
}
