// GETs a health endpoint of a gateway on this machine or behind a Service.

import { readFileSync } from 'node:fs'
import { faultText, fetchBounded } from '../../kube/io/answers/fetch-bounded.ts'

export interface HealthAnswer {
  readonly code: number
  /** The first 64 KiB. */
  readonly body: string
}

export interface HealthRequestOptions {
  /** For the whole response. */
  readonly timeoutMs: number
  /** PEM; default: Node's CAs. */
  readonly caFile?: string
  /** Accept any certificate, like the kubelet's probes. Default: no. */
  readonly skipVerify?: boolean
}

const MAX_BODY_BYTES = 64 * 1024

/** @returns the response, or a description of why there is none. Throws if `caFile` cannot be read. */
export function requestHealth(url: URL, options: HealthRequestOptions): Promise<HealthAnswer | string> {
  const { timeoutMs, caFile, skipVerify = false } = options
  const tls = { ...(caFile !== undefined && { ca: readFileSync(caFile) }), rejectUnauthorized: !skipVerify }
  const signal = AbortSignal.timeout(timeoutMs)
  return fetchBounded(url, { tls, signal })
    .then(async (reply) => ({ code: reply.code, body: (await reply.beginning(MAX_BODY_BYTES)).toString() }))
    .catch((error: unknown) => (signal.aborted ? `no answer within ${timeoutMs / 1000} s` : faultText(error)))
}
