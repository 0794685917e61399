// A deletion or an eviction to be evaluated: shared context of all steps, and its body.

import type { CompiledProtection } from '../../gateway/core/cluster/compiled-cluster.ts'
import { fieldsForBody, UnreadableBody } from '../../gateway/core/request/write-envelope.ts'
import { type Removal, readRemoval } from '../../gateway/request/calls/request-bodies.ts'
import type { Decision } from '../../gateway/request/exchange/decision.ts'
import type { Exchange } from '../../gateway/request/exchange/exchange.ts'
import type { HeaderList } from '../../kit/api/stream.ts'
import { isRefusal, type Refusal, refuse } from '../../kit/core/refusal/refusal.ts'
import type { HealthCriterion, ProtectionGate, ProtectionRequest } from '../api/protection.ts'
import { healthCriterion } from '../core/quota/pod-facts.ts'

/**
 * A uid that no pod has, as a precondition: upstream then reports itself that there is no such pod, and deletes none created
 * meanwhile.
 */
export const NO_POD_UID = '00000000-0000-0000-0000-000000000000'

export interface Deletion {
  readonly exchange: Exchange
  readonly decision: Decision
  readonly settings: CompiledProtection
  readonly gate: ProtectionGate
  readonly cause: ProtectionRequest['cause']
}

export interface AskedDeletion extends Removal {
  /** The Eviction's own, which outranks the pod's; undefined = none. */
  readonly criterion: HealthCriterion | undefined
  /** Request header fields, unmodified. */
  readonly fields: HeaderList
}

/** Reads and parses the body. Only for an authorized caller. */
export async function readAsked({ exchange, cause }: Deletion): Promise<AskedDeletion | Refusal> {
  try {
    const isEviction = cause === 'EvictPod'
    const removal = await readRemoval(exchange, isEviction, 'where this gateway protects pods')
    if (isRefusal(removal)) return removal
    const criterion = isEviction ? healthCriterion(removal.annotations) : undefined
    return { ...removal, criterion, fields: exchange.head.fields }
  } catch (error) {
    if (!(error instanceof UnreadableBody)) throw error
    return refuse(UNREADABLE[error.code], error.message)
  }
}

const UNREADABLE = { 400: 'bad-request', 413: 'body-too-large', 415: 'unsupported-media-type' } as const

/** Builds the request to the ledger. */
export function requestOf(
  { decision, settings, cause }: Deletion,
  { criterion, dryRun }: Pick<AskedDeletion, 'criterion' | 'dryRun'>,
  pod: ProtectionRequest['pod'],
): ProtectionRequest {
  return {
    cell: settings.cell,
    cause,
    via: 'filter',
    pod,
    criterion,
    user: decision.user.name,
    dryRun,
    shadow: settings.shadow,
    timeoutMs: settings.timeoutMs,
  }
}

/**
 * Sends the request upstream unmodified: only if the failure policy allows everything. The body that was read is the one
 * sent, so that no other parser of it can arrive at another pod.
 */
export function keepBody({ exchange }: Deletion, asked: AskedDeletion): void {
  exchange.head.fields = [...asked.fields]
  exchange.setBody(asked.bytes)
}

/**
 * Restricts the request to the pod with this uid, whatever other pod takes its name.
 * @param resourceVersion additional precondition; '' = any version
 */
export function bindBody({ exchange }: Deletion, asked: AskedDeletion, uid: string, resourceVersion: string): void {
  const body = asked.bound(uid, resourceVersion)
  exchange.head.fields = fieldsForBody(asked.fields, asked.contentType, body.length)
  exchange.setBody(body)
}
