// Whether a deletion or an eviction is a dry run, which disrupts nothing. Its body says so: kube-apiserver reads the query of a deletion
// only where there is no body (apiserver/pkg/endpoints/handlers/delete.go).

import { isDryRunQuery, isEviction } from '../../core/policy/disruption.ts'
import { readDeletionRequest } from '../../core/protection/requests/deletion-request.ts'
import { UnreadableBody } from '../../core/protection/requests/deletion-request-body.ts'
import { queryOf } from '../../core/protection/requests/deletion-request-query.ts'
import { readEvictionRequest } from '../../core/protection/requests/eviction-request.ts'
import { isRefusal, type Refusal, refuse } from '../../core/refusal/refusal.ts'
import { headerValue } from '../../core/request/hop-headers.ts'
import type { Decision } from '../exchange/decision.ts'
import { readBody } from '../exchange/read-body.ts'

/** DeleteOptions and Evictions have some hundred bytes. */
const MAX_REMOVAL_BYTES = 16 * 1024

/** Without a body and without a query that says so it is none, and need not wait. */
export function mayBeDryRun({ exchange, info }: Decision): boolean {
  return isEviction(info) || !exchange.requestEnded || exchange.bytes !== undefined || isDryRunQuery(exchange.target)
}

/** No right is asked about first: no more is read than any request may bring along. What cannot be read is not a dry run. */
export async function isDryRunRemoval({ exchange, info }: Decision): Promise<boolean | Refusal> {
  if (exchange.upgrade !== undefined) return false
  const bytes = await readBody(exchange, MAX_REMOVAL_BYTES, tooLarge)
  if (isRefusal(bytes)) return bytes
  const contentType = headerValue(exchange.head.fields, 'content-type') ?? ''
  const query = queryOf(exchange.target)
  try {
    const read = isEviction(info)
      ? readEvictionRequest(contentType, bytes, query)
      : readDeletionRequest(contentType, bytes, query)
    return read.dryRun
  } catch (error) {
    if (error instanceof UnreadableBody) return false
    throw error
  }
}

function tooLarge(): Refusal {
  return refuse(
    'body-too-large',
    `Request entity too large: limit is ${MAX_REMOVAL_BYTES} bytes for a deletion or eviction in this degrade mode; send DeleteOptions or an Eviction and nothing else`,
  )
}
