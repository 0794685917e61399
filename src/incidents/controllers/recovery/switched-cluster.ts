// The degrade switch of an UpstreamCluster as delivered by its API server, and little else of the object.

import type { AutoDegradeStatus } from '../../../gateway/api/upstream-cluster/auto-degrade.ts'
import { type DegradeMode, writtenMode } from '../../../gateway/api/upstream-cluster/degrade-modes.ts'
import { parseFeatureGates } from '../../../gateway/api/upstream-cluster/feature-gates.ts'
import type { DegradeStatus, RecoveryStatus } from '../../../gateway/api/upstream-cluster/status.ts'
import { type DegradeBefore, FEATURE_GATES_ANNOTATION } from '../../../gateway/api/upstream-cluster/upstream-cluster.ts'
import type { JsonObject } from '../../../kit/api/json/json-object.ts'
import { isRecord, recordOf, textOf } from '../../../kit/api/json/object-shape.ts'
import { AUTOMATIC } from '../../core/auto-degrade.ts'

export interface SwitchedCluster {
  /** For Events. */
  readonly object: JsonObject
  readonly resourceVersion: string
  /** undefined = unknown to this version. */
  readonly mode: DegradeMode | undefined
  /** The mode in force: Off from expiresAt on. An unknown one may be as strict as Freeze. @param nowMs milliseconds since the epoch */
  modeAt(nowMs: number): DegradeMode
  /** The reason says that the gateway has set the mode. */
  readonly automatic: boolean
  /** spec.degrade.auto is set. */
  readonly asks: boolean
  /** spec.degrade.recovery is set. */
  readonly recovers: boolean
  /** Milliseconds since the epoch; 0 = never. */
  readonly expiresAtMs: number
  /** What a recovery restores at its end; undefined = Off, also if it has expired. @param nowMs milliseconds since the epoch */
  beforeAt(nowMs: number): DegradeBefore | undefined
  /** spec.degrade.before is set, whatever it says. */
  readonly remembers: boolean
  /** KubeGateway's annotation freezes it regardless of the mode. */
  readonly deniesAll: boolean
  readonly status: DegradeStatus
  /** status.degrade.auto. */
  readonly auto: AutoDegradeStatus | undefined
  /** Disruptive requests that each replica has refused in the last minute, by replica; absent = none. */
  readonly refused: ReadonlyMap<string, number>
}

/** Keeps little of an object: of thousands, few are in an incident. */
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

export function readSwitchedCluster(object: JsonObject): SwitchedCluster {
  const metadata = recordOf(object['metadata'])
  const degrade = recordOf(recordOf(object['spec'])['degrade'])
  const status = recordOf(recordOf(object['status'])['degrade'])
  const expiresAtMs = Date.parse(textOf(degrade['expiresAt'])) || 0
  const gates = parseFeatureGates(textOf(recordOf(metadata['annotations'])[FEATURE_GATES_ANNOTATION]))
  const deniesAll = gates.enabled.has('DenyAllRequests')
  const mode = writtenMode(degrade['mode'])
  return {
    object,
    resourceVersion: textOf(metadata['resourceVersion']),
    mode,
    modeAt: (nowMs) => {
      if (deniesAll) return 'Freeze'
      return expiresAtMs !== 0 && nowMs >= expiresAtMs ? 'Off' : (mode ?? 'Freeze')
    },
    automatic: textOf(degrade['reason']).startsWith(AUTOMATIC),
    asks: isRecord(degrade['auto']),
    recovers: isRecord(degrade['recovery']),
    expiresAtMs,
    beforeAt: (nowMs) => readBefore(degrade['before'], nowMs),
    remembers: isRecord(degrade['before']),
    deniesAll,
    status: degradeStatus(status),
    auto: isAutoStatus(status['auto']) ? status['auto'] : undefined,
    refused: new Map(refusingGateways(object).map(({ name, refusedDisruptive }) => [name, refusedDisruptive])),
  }
}

/** undefined = a recovery leads to Off. A mode unknown to this version counts as none. */
export function readBefore(value: unknown, nowMs: number): DegradeBefore | undefined {
  if (!isRecord(value)) return undefined
  const { reason, expiresAt, shadow } = value
  const mode = writtenMode(value['mode'])
  if (mode === undefined || mode === 'Off' || Date.parse(textOf(expiresAt)) <= nowMs) return undefined
  return {
    mode,
    ...(textOf(reason) !== '' && { reason: textOf(reason) }),
    ...(textOf(expiresAt) !== '' && { expiresAt: textOf(expiresAt) }),
    ...(shadow === true && { shadow }),
  }
}

/** Written by a gateway. An API server with an older CRD accepts any value there from other writers: such values are ignored. */
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

function isAutoStatus(value: unknown): value is AutoDegradeStatus {
  if (!isRecord(value)) return false
  const { phase, reason, since, causes } = value
  const texts = [phase, reason, since]
  return texts.every((text) => typeof text === 'string') && (causes === undefined || Array.isArray(causes))
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
