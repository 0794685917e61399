// The gateway's own calls to a kube-apiserver: TokenReview and SubjectAccessReview over the connections that carry the
// clients' requests, probes over those of the main thread. Also calls that it makes on behalf of a client's request.

import type { Charge, HeaderList, SharedFields, StreamEvents } from '../../api/ports/stream.ts'
import { BodyPieces } from '../../core/request/body-pieces.ts'
import type { UpstreamEndpoint } from './pool.ts'

/** The gateway's own calls beside the requests of clients. */
const GATEWAY: Charge = { source: 'the gateway itself', weight: 8, known: true }

export interface KubeCall {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** Raw request target. */
  readonly path: string
  readonly authority: string
  /** Bearer token of the gateway; '' when it has a client certificate. */
  readonly token: string
  readonly body?: string | Buffer
  /** Of `body`. Default application/json. */
  readonly contentType?: string
  readonly timeoutMs: number
  /** The user it is made for; absent = the gateway itself. If set, `token` is ''. */
  readonly credentials?: SharedFields
  /** Header fields instead of the gateway's user-agent; none that the call sets itself. */
  readonly fields?: HeaderList
  /** Largest accepted response, bytes. Default 3 MiB. */
  readonly maxAnswerBytes?: number
}

export interface KubeAnswer {
  readonly status: number
  readonly body: string
  /** Absent when nothing was sent. */
  readonly head?: HeaderList
}

/** Why there was no response. */
export class KubeCallError extends Error {
  /** Whether no server can have processed it. */
  readonly unprocessed: boolean

  constructor(message: string, unprocessed = false) {
    super(message)
    this.unprocessed = unprocessed
  }
}

/** Nothing came in time: the server may be slow, or gone. */
export class NoAnswerError extends KubeCallError {
  constructor(timeoutMs: number) {
    super(`no answer within ${timeoutMs} ms`)
  }
}

/** The gateway itself held it back: too many calls are running. */
export class CallLimitError extends KubeCallError {
  readonly retryAfterSeconds: number

  constructor(message: string, retryAfterSeconds: number) {
    super(message, true)
    this.retryAfterSeconds = retryAfterSeconds
  }
}

/** The request's head is larger than the server accepts: nothing was sent, and other endpoints would not accept it either. */
export class HeadTooLargeError extends KubeCallError {
  /** The server's limit. */
  readonly maxBytes: number

  constructor(maxBytes: number) {
    super(`the header fields are larger than the ${maxBytes} bytes that the server takes`, true)
    this.maxBytes = maxBytes
  }
}

/** The server has processed the request, but its response is too large; so would be that of any other endpoint. */
export class AnswerTooLargeError extends KubeCallError {
  constructor(maxBytes: number) {
    super(`the answer is larger than ${maxBytes} bytes`)
  }
}

/** Default limit of a response, bytes; a larger one is an error. */
const MAX_ANSWER_BYTES = 3 * 1024 * 1024
const USER_AGENT = 'portcullis'

/** @throws {KubeCallError} when no complete response arrived in time */
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
    ...(call.fields ?? ['user-agent', USER_AGENT]),
  ]
  const payload = typeof call.body === 'string' ? Buffer.from(call.body) : call.body
  if (payload !== undefined) {
    head.push('content-type', call.contentType ?? 'application/json', 'content-length', String(payload.length))
  }
  if (call.token !== '') head.push('authorization', `Bearer ${call.token}`)
  const { maxAnswerBytes = MAX_ANSWER_BYTES } = call
  return new Promise((resolve, reject) => {
    let answered: HeaderList = []
    let size = 0
    const pieces = new BodyPieces()
    const fail = (error: KubeCallError): void => {
      clearTimeout(deadline)
      reject(error)
    }
    const done = (): void => {
      clearTimeout(deadline)
      resolve({ status: Number(answered[1]), body: Buffer.concat(pieces.take()).toString('utf8'), head: answered })
    }
    const events: StreamEvents = {
      onHeaders(list, end) {
        answered = list
        if (end) done()
      },
      onBody(chunk, end) {
        size += chunk.length
        stream.credit(chunk.length)
        if (size > maxAnswerBytes) {
          stream.reset('cancel')
          const worked = Number(answered[1]) < 300
          fail(worked ? new AnswerTooLargeError(maxAnswerBytes) : new KubeCallError('answer too large'))
          return
        }
        pieces.add(chunk)
        if (end) done()
      },
      onTrailers: () => done(),
      onDrained: () => undefined,
      onReset(reason) {
        if (reason === 'head-too-large') fail(new HeadTooLargeError(endpoint.maxListBytes()))
        else if (reason === 'refused' || reason === 'overloaded')
          fail(new KubeCallError(endpoint.dialRefusal || 'connection failed', true))
        else fail(new KubeCallError(`connection broke (${reason})`))
      },
    }
    const stream = endpoint.open('unary', head, call.credentials, payload === undefined, events, GATEWAY)
    const deadline = setTimeout(() => {
      stream.reset('cancel')
      reject(new NoAnswerError(call.timeoutMs))
    }, call.timeoutMs)
    if (payload !== undefined) stream.body(payload, true)
  })
}
