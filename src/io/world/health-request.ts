// One GET of a health endpoint, of a gateway on this machine or behind a Service. It follows no redirects and keeps no connection.

import { readFileSync } from 'node:fs'
import { request as requestPlain } from 'node:http'
import { type RequestOptions, request as requestTls } from 'node:https'
import { errorMessage } from '../../api/validation/error-message.ts'

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
  const tls: RequestOptions = {
    ...(caFile !== undefined && { ca: readFileSync(caFile) }),
    rejectUnauthorized: !skipVerify,
  }
  return new Promise((resolve) => {
    const signal = AbortSignal.timeout(timeoutMs)
    const failed = (error: Error): void =>
      resolve(signal.aborted ? `no answer within ${timeoutMs / 1000} s` : reasonOf(error))
    const common: RequestOptions = { agent: false, signal }
    const request = url.protocol === 'https:' ? requestTls(url, { ...common, ...tls }) : requestPlain(url, common)
    request.on('error', failed)
    request.on('response', (response) => {
      const chunks: Buffer[] = []
      let bytes = 0
      const answered = (): void => {
        const body = Buffer.concat(chunks).subarray(0, MAX_BODY_BYTES).toString()
        resolve({ code: response.statusCode ?? 0, body })
      }
      response.on('data', (chunk: Buffer) => {
        chunks.push(chunk)
        bytes += chunk.length
        if (bytes < MAX_BODY_BYTES) return
        answered()
        request.destroy()
      })
      response.on('error', failed)
      response.on('end', answered)
    })
    request.end()
  })
}

/** Of several addresses each has failed: Node says so in an AggregateError without a message. */
function reasonOf(error: Error): string {
  if (!(error instanceof AggregateError)) return error.message
  return error.errors.map((one: unknown) => errorMessage(one)).join(', ')
}
