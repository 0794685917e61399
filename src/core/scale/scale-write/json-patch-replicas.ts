// spec.replicas in a JSON patch (RFC 6902), as kube-apiserver applies it (gopkg.in/evanphx/json-patch.v4).

import { isRecord, textOf } from '../../../api/kube/object-shape.ts'
import { ASK_UPSTREAM, type ReplicasWritten, replicasValue, UNCHANGED } from './written.ts'

const REPLICAS = '/spec/replicas'
/** What an operation on one of these does to the replicas depends on what is there. */
const ABOVE: ReadonlySet<string> = new Set(['', '/', '/spec', '/spec/'])
/** They do what they do to the place that they name, and nowhere else. */
const PLAIN: ReadonlySet<string> = new Set(['add', 'replace', 'remove'])

/** Certain is only `add` or `replace` of the field itself, beside operations that cannot touch it. */
export function readJsonPatch(operations: unknown): ReplicasWritten {
  if (!Array.isArray(operations)) return ASK_UPSTREAM
  let written: ReplicasWritten = UNCHANGED
  for (const operation of operations as readonly unknown[]) {
    if (!isRecord(operation)) return ASK_UPSTREAM
    const op = textOf(operation['op'])
    // Whether the patch is applied, and not what it does. As a dry run it could fail, and a moment later, as the write itself, succeed.
    if (op === 'test') continue
    const path = operation['path']
    // The library drops what stands before the first slash.
    if (!PLAIN.has(op) || typeof path !== 'string' || !path.startsWith('/')) return ASK_UPSTREAM
    if (ABOVE.has(path) || path.startsWith(`${REPLICAS}/`)) return ASK_UPSTREAM
    if (path !== REPLICAS) continue
    const value = operation['value']
    if (op === 'remove' || value === undefined || value === null) return ASK_UPSTREAM
    written = replicasValue(value)
    if (written.kind !== 'replicas') return written
  }
  return written
}
