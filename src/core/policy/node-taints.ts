// NoExecute taints: they evict the pods of a node that do not tolerate them.

import { isUtf8 } from 'node:buffer'
import type { JsonObject } from '../../api/kube/json-object.ts'
import { isRecord, recordOf } from '../../api/kube/object-shape.ts'

const NO_EXECUTE = 'NoExecute'

/**
 * Whether a write of a node with this body may add one: otherwise nobody need be asked about it, and hardly any write of a node is
 * about taints. The word itself has to be in the body; or what another word becomes it by: an escape of JSON or YAML, a tag of YAML
 * (`!!binary`), an operation of a JSON patch that copies it from elsewhere. Of formats that are not known here anything may.
 */
export function mayAddNoExecute(contentType: string, body: Buffer): boolean {
  if (body.includes(NO_EXECUTE)) return true
  switch (contentType.split(';', 1)[0]?.trim().toLowerCase()) {
    case 'application/vnd.kubernetes.protobuf':
      return false
    case '':
    case 'application/json':
    case 'application/merge-patch+json':
    case 'application/strategic-merge-patch+json':
      return body.includes('\\')
    case 'application/json-patch+json':
      return body.includes('\\') || body.includes('copy') || body.includes('move')
    case 'application/yaml':
    case 'application/apply-patch+yaml':
      // Go's library reads UTF-16, too.
      return body.includes('\\') || body.includes('!') || !isUtf8(body)
    default:
      return true
  }
}

/** Key and value of the first NoExecute taint that the node has after a write, and had not before; undefined = none. */
export function addedNoExecute(before: JsonObject, after: JsonObject): string | undefined {
  const known = new Set(noExecuteTaints(before))
  return noExecuteTaints(after).find((taint) => !known.has(taint))
}

/** A toleration may be for one value only, so another value is another taint. */
function noExecuteTaints(node: JsonObject): string[] {
  const { taints } = recordOf(node['spec'])
  if (!Array.isArray(taints)) return []
  const found: string[] = []
  for (const taint of taints as readonly unknown[]) {
    if (!isRecord(taint) || taint['effect'] !== NO_EXECUTE) continue
    const { key, value } = taint
    found.push(typeof value === 'string' && value !== '' ? `${String(key)}=${value}` : String(key))
  }
  return found
}
