// Metrics of the OpenID provider of the embedded API server.

import {
  CONTROL_OIDC_FETCHES,
  CONTROL_OIDC_KEYS_TIME,
  CONTROL_OIDC_TOKENS,
} from '../../../gateway/metrics/descriptors.ts'
import type { Exposition } from '../../../gateway/metrics/exposition.ts'

export interface OidcCounts {
  /** Tokens by result: `accepted`, or the reason for refusal. */
  readonly tokens: ReadonlyMap<string, number>
  readonly fetched: number
  readonly notFetched: number
  /** When its keys were last read, milliseconds since the epoch; 0 = never. */
  readonly fetchedAtMs: number
}

export function exposeOidc(into: Exposition, { tokens, fetched, notFetched, fetchedAtMs }: OidcCounts): void {
  for (const [result, count] of tokens) into.addMetric(CONTROL_OIDC_TOKENS, count, result)
  into.addMetric(CONTROL_OIDC_FETCHES, fetched, 'success')
  into.addMetric(CONTROL_OIDC_FETCHES, notFetched, 'error')
  into.addMetric(CONTROL_OIDC_KEYS_TIME, fetchedAtMs / 1000)
}
