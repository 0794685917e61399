// One GET of a health endpoint, of a gateway on this machine or behind a Service.

import { readFileSync } from 'node:fs'
import { faultText, fetchBounded } from '../../kube/io/answers/fetch-bounded.ts'

export interface HealthAnswer {
  readonly code: number
  /** Its first 64 KiB. */
  readonly body: string
}

export interface HealthRequestOptions {
  /** For the whole answer. */
  readonly timeoutMs: number
  /** PEM; none: the authorities of Node. */
  readonly caFile?: string
  /** Accept any certificate, as the kubelet does in its probes. Default: no. */
  readonly skipVerify?: boolean
}

const MAX_BODY_BYTES = 64 * 1024

/** @returns the answer, or in words why there is none. Throws when `caFile` cannot be read. */
export function requestHealth(url: URL, options: HealthRequestOptions): Promise<HealthAnswer | string> {
  const { timeoutMs, caFile, skipVerify = false } = options
  const tls = { ...(caFile !== undefined && { ca: readFileSync(caFile) }), rejectUnauthorized: !skipVerify }
  const signal = AbortSignal.timeout(timeoutMs)
  return fetchBounded(url, { tls, signal })
    .then(async (reply) => ({ code: reply.code, body: (await reply.beginning(MAX_BODY_BYTES)).toString() }))
    .catch((error: unknown) => (signal.aborted ? `no answer within ${timeoutMs / 1000} s` : faultText(error)))
}
