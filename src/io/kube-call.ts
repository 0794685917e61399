// The gateway's own calls to a kube-apiserver: TokenReview and SubjectAccessReview over the connections that carry the
// clients' requests, probes over those of the main thread.

import type { HeaderList } from '../api/stream.ts'
import type { UpstreamEndpoint } from './upstream-pool.ts'

export interface KubeCall {
  readonly method: 'GET' | 'POST'
  /** Raw request target. */
  readonly path: string
  readonly authority: string
  /** Bearer token of the gateway; '' when it has a client certificate. */
  readonly token: string
  readonly body?: string
  readonly timeoutMs: number
}

export interface KubeAnswer {
  readonly status: number
  readonly body: string
}

/** Why no answer came. */
export class KubeCallError extends Error {}

/** An answer of the gateway's own calls is never larger; more is cut off as an error. */
const MAX_ANSWER_BYTES = 3 * 1024 * 1024
const USER_AGENT = 'portcullis'

/** @throws {KubeCallError} when no complete answer came in time */
export function kubeCall(endpoint: UpstreamEndpoint, call: KubeCall): Promise<KubeAnswer> {
  const head: HeaderList = [
    ':method',
    call.method,
    ':path',
    call.path,
    ':authority',
    call.authority,
    ':scheme',
    'https',
    'accept',
    'application/json',
    'user-agent',
    USER_AGENT,
  ]
  const payload = call.body === undefined ? undefined : Buffer.from(call.body)
  if (payload !== undefined) head.push('content-type', 'application/json', 'content-length', String(payload.length))
  if (call.token !== '') head.push('authorization', `Bearer ${call.token}`)
  return new Promise((resolve, reject) => {
    let status = 0
    let size = 0
    const chunks: Buffer[] = []
    const fail = (message: string): void => {
      clearTimeout(deadline)
      reject(new KubeCallError(message))
    }
    const done = (): void => {
      clearTimeout(deadline)
      resolve({ status, body: Buffer.concat(chunks).toString('utf8') })
    }
    const stream = endpoint.open('unary', head, undefined, payload === undefined, {
      onHeaders(list, end) {
        status = Number(list[1])
        if (end) done()
      },
      onBody(chunk, end) {
        size += chunk.length
        stream.credit(chunk.length)
        if (size > MAX_ANSWER_BYTES) {
          stream.reset('cancel')
          fail('answer too large')
          return
        }
        chunks.push(Buffer.from(chunk))
        if (end) done()
      },
      onTrailers: () => done(),
      onDrained: () => undefined,
      onReset: (reason) => fail(reason === 'refused' ? 'connection failed' : `connection broke (${reason})`),
    })
    const deadline = setTimeout(() => {
      stream.reset('cancel')
      reject(new KubeCallError(`no answer within ${call.timeoutMs} ms`))
    }, call.timeoutMs)
    if (payload !== undefined) stream.body(payload, true)
  })
}
