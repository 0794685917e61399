// spec.replicas in protocol buffers: of Deployments, ReplicaSets, StatefulSets, ReplicationControllers and Scales alike it is field 1
// of field 2 (k8s.io/api/{apps/v1,core/v1,autoscaling/v1}/generated.proto).

import { openEnvelope, UnreadableBody } from '../../protection/requests/deletion-request-body.ts'
import { ProtobufReader } from '../../text/protobuf-reader.ts'
import type { ScaleTarget } from './scale-target.ts'
import { ASK_UPSTREAM, type ReplicasWritten, replicasValue } from './written.ts'

const SPEC = 2
const REPLICAS = 1
const MAX_INT32 = 2 ** 31 - 1

export function readProtobuf(
  body: Buffer,
  { isScale, builtIn }: Pick<ScaleTarget, 'isScale' | 'builtIn'>,
): ReplicasWritten {
  if (!isScale && !builtIn) return ASK_UPSTREAM
  try {
    const replicas = readSpecs(new ProtobufReader(openEnvelope(body).raw))
    // Go cuts a larger number down to 32 bits.
    if (replicas !== undefined && Math.abs(replicas) > MAX_INT32) return ASK_UPSTREAM
    // A Scale has no default, and zero may be left out.
    return replicasValue(replicas ?? (isScale ? 0 : 1))
  } catch (error) {
    if (error instanceof SyntaxError || error instanceof UnreadableBody) return ASK_UPSTREAM
    throw error
  }
}

/** Of several the fields are merged, the last one holds. */
function readSpecs(object: ProtobufReader): number | undefined {
  let replicas: number | undefined
  while (object.next()) {
    if (object.number !== SPEC) continue
    const spec = new ProtobufReader(object.bytes())
    while (spec.next()) if (spec.number === REPLICAS) replicas = spec.integer()
  }
  return replicas
}
