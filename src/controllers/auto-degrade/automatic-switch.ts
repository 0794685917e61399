// spec.degrade of an UpstreamCluster as its API server gives it, as far as spec.degrade.auto goes by it.

import type { JsonObject } from '../../api/kube/json-object.ts'
import { isRecord, recordOf, textOf } from '../../api/kube/object-shape.ts'
import type { AutoDegradeStatus } from '../../api/upstream-cluster/auto-degrade.ts'
import { type DegradeMode, writtenMode } from '../../api/upstream-cluster/degrade-modes.ts'
import { parseFeatureGates } from '../../api/upstream-cluster/feature-gates.ts'
import { FEATURE_GATES_ANNOTATION } from '../../api/upstream-cluster/upstream-cluster.ts'
import { AUTOMATIC } from '../../core/incident/auto-degrade.ts'

export interface AutomaticSwitch {
  readonly uid: string
  readonly resourceVersion: string
  /** spec.degrade.auto is there. */
  readonly asks: boolean
  /** As written. */
  readonly mode: DegradeMode
  /** In force: Off from expiresAt on. @param nowMs milliseconds since the epoch */
  modeAt(nowMs: number): DegradeMode
  /** The reason says that the gateway has set the mode. */
  readonly automatic: boolean
  /** spec.degrade.recovery is there. */
  readonly recovers: boolean
  /** status.degrade.auto. */
  readonly status: AutoDegradeStatus | undefined
}

/** What is kept of an object. */
export function slimObject(object: JsonObject): JsonObject {
  const { name, uid, resourceVersion, annotations } = recordOf(object['metadata'])
  const gates = recordOf(annotations)[FEATURE_GATES_ANNOTATION]
  const metadata = { name, uid, resourceVersion, annotations: { [FEATURE_GATES_ANNOTATION]: gates } }
  const { mode, reason, expiresAt, recovery, auto } = recordOf(recordOf(object['spec'])['degrade'])
  const degrade = { mode, reason, expiresAt, recovery, auto }
  const { apiVersion, kind } = object
  return {
    apiVersion,
    kind,
    metadata,
    spec: { degrade },
    status: { degrade: { auto: recordOf(recordOf(object['status'])['degrade'])['auto'] } },
  }
}

export function readSwitch(object: JsonObject): AutomaticSwitch {
  const metadata = recordOf(object['metadata'])
  const degrade = recordOf(recordOf(object['spec'])['degrade'])
  const status = recordOf(recordOf(object['status'])['degrade'])['auto']
  const gates = parseFeatureGates(textOf(recordOf(metadata['annotations'])[FEATURE_GATES_ANNOTATION]))
  const expiresAtMs = Date.parse(textOf(degrade['expiresAt']))
  // KubeGateway's annotation freezes the cluster whatever the mode. One that this version does not know may be as strict.
  const frozen = gates.enabled.has('DenyAllRequests')
  const mode = writtenMode(degrade['mode']) ?? 'Freeze'
  return {
    uid: textOf(metadata['uid']),
    resourceVersion: textOf(metadata['resourceVersion']),
    asks: isRecord(degrade['auto']),
    mode,
    modeAt: (nowMs) => (frozen ? 'Freeze' : nowMs >= expiresAtMs ? 'Off' : mode),
    automatic: textOf(degrade['reason']).startsWith(AUTOMATIC),
    recovers: isRecord(degrade['recovery']),
    status: isStatus(status) ? status : undefined,
  }
}

/** Written by a gateway. An API server with an older definition of the kind lets others write anything there. */
function isStatus(value: unknown): value is AutoDegradeStatus {
  if (!isRecord(value)) return false
  const { phase, reason, since, causes } = value
  return (
    [phase, reason, since].every((text) => typeof text === 'string') && (causes === undefined || Array.isArray(causes))
  )
}
