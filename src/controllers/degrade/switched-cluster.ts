// The degrade switch of an UpstreamCluster as its API server gives it, and little else of the object.

import type { JsonObject } from '../../api/kube/json-object.ts'
import { isRecord, recordOf, textOf } from '../../api/kube/object-shape.ts'
import { DEGRADE_MODES, type DegradeMode, writtenMode } from '../../api/upstream-cluster/degrade-modes.ts'
import { parseFeatureGates } from '../../api/upstream-cluster/feature-gates.ts'
import type { DegradeStatus, RecoveryStatus } from '../../api/upstream-cluster/status.ts'
import { FEATURE_GATES_ANNOTATION } from '../../api/upstream-cluster/upstream-cluster.ts'

export interface SwitchedCluster {
  /** For Events. */
  readonly object: JsonObject
  readonly uid: string
  readonly resourceVersion: string
  /** undefined = one that this version does not know. */
  readonly mode: DegradeMode | undefined
  /** spec.degrade.recovery is there. */
  readonly recovers: boolean
  /** Milliseconds since the epoch; 0 = never. */
  readonly expiresAtMs: number
  /** KubeGateway's annotation freezes it whatever the mode. */
  readonly deniesAll: boolean
  readonly status: DegradeStatus
  /** How many disruptive requests each replica has refused in the last minute, by its name; those that have refused none are absent. */
  readonly refused: ReadonlyMap<string, number>
}

/** What is kept of an object: of thousands, few are in an incident. */
export function slimCluster(object: JsonObject): JsonObject {
  const { name, uid, resourceVersion, generation, annotations } = recordOf(object['metadata'])
  const gates = recordOf(annotations)[FEATURE_GATES_ANNOTATION]
  return {
    apiVersion: object['apiVersion'],
    kind: object['kind'],
    metadata: { name, uid, resourceVersion, generation, annotations: { [FEATURE_GATES_ANNOTATION]: gates } },
    spec: { degrade: recordOf(object['spec'])['degrade'] },
    status: { degrade: recordOf(object['status'])['degrade'], gateways: refusingGateways(object) },
  }
}

export function readSwitch(object: JsonObject): SwitchedCluster {
  const metadata = recordOf(object['metadata'])
  const degrade = recordOf(recordOf(object['spec'])['degrade'])
  const expiresAtMs = Date.parse(textOf(degrade['expiresAt']))
  const gates = parseFeatureGates(textOf(recordOf(metadata['annotations'])[FEATURE_GATES_ANNOTATION]))
  return {
    object,
    uid: textOf(metadata['uid']),
    resourceVersion: textOf(metadata['resourceVersion']),
    mode: writtenMode(degrade['mode']),
    recovers: isRecord(degrade['recovery']),
    expiresAtMs: Number.isNaN(expiresAtMs) ? 0 : expiresAtMs,
    deniesAll: gates.enabled.has('DenyAllRequests'),
    status: degradeStatus(recordOf(recordOf(object['status'])['degrade'])),
    refused: new Map(refusingGateways(object).map(({ name, refusedDisruptive }) => [name, refusedDisruptive])),
  }
}

/** Written by a gateway. An API server with an older definition of the kind lets others write anything there: that counts as absent. */
function degradeStatus({ readyNodesBefore, recovery }: Readonly<Record<string, unknown>>): DegradeStatus {
  return {
    ...(typeof readyNodesBefore === 'number' && { readyNodesBefore }),
    ...(isRecovery(recovery) && { recovery }),
  }
}

function isRecovery(value: unknown): value is RecoveryStatus {
  if (!isRecord(value)) return false
  const { step, since, startedFrom, waitingFor, checks } = value
  const texts = [step, since, startedFrom, waitingFor]
  return texts.every((text) => typeof text === 'string') && Array.isArray(checks) && checks.every(isRecord)
}

interface RefusingGateway {
  readonly name: string
  readonly refusedDisruptive: number
}

function refusingGateways(object: JsonObject): readonly RefusingGateway[] {
  const { gateways } = recordOf(object['status'])
  const list: readonly unknown[] = Array.isArray(gateways) ? gateways : []
  return list.filter(isRecord).flatMap(({ name, refusedDisruptive }): RefusingGateway[] => {
    const refused = typeof refusedDisruptive === 'number' && refusedDisruptive > 0 ? refusedDisruptive : 0
    return refused > 0 ? [{ name: textOf(name), refusedDisruptive: refused }] : []
  })
}

export function knownMode(text: string): DegradeMode | undefined {
  return DEGRADE_MODES.find((mode) => mode === text)
}
