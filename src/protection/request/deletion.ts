// A deletion or an eviction on its way to be evaluated: what all steps of it need, and its body.

import type { CompiledProtection } from '../../gateway/core/cluster/compiled-cluster.ts'
import { type Removal, readRemoval } from '../../gateway/request/calls/request-bodies.ts'
import type { Decision } from '../../gateway/request/exchange/decision.ts'
import type { Exchange } from '../../gateway/request/exchange/exchange.ts'
import type { HeaderList } from '../../kit/api/stream.ts'
import { isRefusal, type Refusal, refuse } from '../../kit/core/refusal/refusal.ts'
import type { ProtectionGate, ProtectionRequest } from '../api/protection.ts'
import { fieldsForBody, UnreadableBody } from '../core/requests/deletion-request-body.ts'

/**
 * uid that no pod has, as a precondition: upstream then says itself that there is no such pod, and deletes none that has come
 * into being meanwhile.
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
  /** Header fields of the request as they came. */
  readonly fields: HeaderList
}

/** Reads the body to its end, and what it asks for. Only for a caller that may delete. */
export async function readAsked({ exchange, cause }: Deletion): Promise<AskedDeletion | Refusal> {
  try {
    const removal = await readRemoval(exchange, cause === 'EvictPod', 'where this gateway protects pods')
    return isRefusal(removal) ? removal : { ...removal, fields: exchange.head.fields }
  } catch (error) {
    if (!(error instanceof UnreadableBody)) throw error
    return refuse(UNREADABLE[error.code], error.message)
  }
}

const UNREADABLE = { 400: 'bad-request', 413: 'body-too-large', 415: 'unsupported-media-type' } as const

/** What the ledger is asked. */
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
 * The request goes upstream as it came: only where the failure policy lets everything pass. What is read of a body is what is
 * sent on, so that no other reader of it can come to another pod.
 */
export function keepBody({ exchange }: Deletion, asked: AskedDeletion): void {
  exchange.head.fields = [...asked.fields]
  exchange.setBody(asked.bytes)
}

/**
 * The request goes upstream for the pod with this uid, and for no other one of its name.
 * @param resourceVersion and only as it was read; '' = whatever it is
 */
export function bindBody({ exchange }: Deletion, asked: AskedDeletion, uid: string, resourceVersion: string): void {
  const body = asked.bound(uid, resourceVersion)
  exchange.head.fields = fieldsForBody(asked.fields, asked.contentType, body.length)
  exchange.setBody(body)
}
