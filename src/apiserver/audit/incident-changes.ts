// What a write changed that somebody will ask for after an incident: the degrade switch, and who is cut off. A record at level
// Metadata says only that an object was written.

import type { JsonObject } from '../../api/kube/json-object.ts'
import { isRecord } from '../../api/kube/object-shape.ts'

type Changes = Readonly<Record<string, string>>

/** Annotations of the audit event. @param before, after the UpstreamCluster; undefined = there was, or is, none */
export function incidentChanges(before: JsonObject | undefined, after: JsonObject | undefined): Changes {
  const changes: Record<string, string> = {}
  const modes = [modeOf(before), modeOf(after)]
  if (modes[0] !== modes[1]) changes['portcullis.io/degrade'] = modes.join(' -> ')
  const revoked = [revocationsOf(before), revocationsOf(after)]
  if (revoked[0] !== revoked[1]) changes['portcullis.io/revoked'] = revoked.join(' -> ')
  return changes
}

function modeOf(object: JsonObject | undefined): string {
  const mode = fieldOf(object, 'degrade', 'mode')
  return typeof mode === 'string' ? mode : 'Off'
}

/** How many entries. */
function revocationsOf(object: JsonObject | undefined): number {
  const revoked = fieldOf(object, 'authentication', 'revoked')
  return Array.isArray(revoked) ? revoked.length : 0
}

function fieldOf(object: JsonObject | undefined, group: string, field: string): unknown {
  const spec = object?.['spec']
  const inner = isRecord(spec) ? spec[group] : undefined
  return isRecord(inner) ? inner[field] : undefined
}
