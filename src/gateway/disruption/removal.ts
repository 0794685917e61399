// Whether a deletion or an eviction is a dry run, which disrupts nothing. Its body says so: kube-apiserver reads the query of a deletion
// only where there is no body (apiserver/pkg/endpoints/handlers/delete.go).

import { isDryRunQuery, isEviction } from '../../core/policy/disruption.ts'
import { UnreadableBody } from '../../core/protection/requests/deletion-request-body.ts'
import { isRefusal, type Refusal } from '../../core/refusal/refusal.ts'
import { readRemoval } from '../calls/request-bodies.ts'
import type { Decision } from '../exchange/decision.ts'

/** Without a body and without a query that says so it is none, and need not wait. */
export function mayBeDryRun({ exchange, info }: Decision): boolean {
  return isEviction(info) || !exchange.requestEnded || exchange.bytes !== undefined || isDryRunQuery(exchange.target)
}

/** No right is asked about first: no more is read than any request may bring along. What cannot be read is not a dry run. */
export async function isDryRunRemoval({ exchange, info }: Decision): Promise<boolean | Refusal> {
  if (exchange.upgrade !== undefined) return false
  try {
    const removal = await readRemoval(exchange, isEviction(info), 'in this degrade mode')
    return isRefusal(removal) ? removal : removal.dryRun
  } catch (error) {
    if (error instanceof UnreadableBody) return false
    throw error
  }
}
