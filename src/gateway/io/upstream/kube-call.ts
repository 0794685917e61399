// The gateway's own calls to a kube-apiserver: TokenReview and SubjectAccessReview on the connections that carry clients' requests, probes on those
// of the main thread. Also calls made on behalf of a client's request.

import type { Charge, HeaderList, SharedFields, StreamEvents } from '../../../kit/api/stream.ts'
import { type AnswerLimits, SHORT_TEXT_BYTES } from '../../../kube/core/answers/answer-limits.ts'
import { AnswerReader } from '../../../kube/core/answers/answer-reader.ts'
import {
  AnswerTooLargeError,
  HeadTooLargeError,
  KubeCallError,
  NoAnswerError,
  NoRoomError,
} from '../../../kube/core/answers/call-errors.ts'
import { AnswerBytes, COUNT_SEED } from '../../../kube/io/answers/thread-answers.ts'
import { headerValue } from '../../core/request/hop-headers.ts'
import type { UpstreamEndpoint } from './pool.ts'

/** Pays for the gateway's own calls, next to clients' requests. */
const GATEWAY: Charge = { source: 'the gateway itself', weight: 8, known: true }

export interface KubeCall {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** Raw request target. */
  readonly path: string
  readonly authority: string
  /** The gateway's bearer token; '' if it has a client certificate. */
  readonly token: string
  readonly body?: string | Buffer
  /** Content type of `body`. Default application/json. */
  readonly contentType?: string
  /** Default application/json: an object, or a list of whole objects. */
  readonly accept?: string
  readonly timeoutMs: number
  /** The user on whose behalf it is made; absent = the gateway itself. If set, `token` is ''. */
  readonly credentials?: SharedFields
  /** Header fields instead of the gateway's user-agent; must not include fields that the call sets itself. */
  readonly fields?: HeaderList
  /** Limits of the response, unless it is an error. */
  readonly limits: AnswerLimits
  /** The source that is charged for the memory of the response while it arrives. */
  readonly payer: Charge
}

export interface KubeAnswer {
  readonly status: number
  /** Within the limits, so it may be parsed. For an error that exceeds them, a Status that says so. */
  readonly body: string
  /** Absent if nothing was sent. */
  readonly head?: HeaderList
}

/** Codes from here on are errors, or redirects, which are not followed. */
const FIRST_ERROR = 300
const USER_AGENT = 'portcullis'
/** Endpoints tried per call. */
const MAX_TRIES = 3

/**
 * @throws {KubeCallError} if no complete response arrived in time
 * @throws {AnswerTooLargeError} @throws {NoRoomError}
 */
export function kubeCall(endpoint: UpstreamEndpoint, call: KubeCall): Promise<KubeAnswer> {
  const payload = typeof call.body === 'string' ? Buffer.from(call.body) : call.body
  return new Promise((resolve, reject) => {
    const memory = new AnswerBytes(call.payer)
    const reader = new AnswerReader(call.limits.bytes, memory)
    let head: HeaderList = []
    let status = 0
    const fail = (error: KubeCallError): void => {
      clearTimeout(deadline)
      reader.drop()
      reject(error)
    }
    const giveUp = (error: KubeCallError): void => {
      stream.reset('cancel')
      fail(error)
    }
    const done = (): void => {
      clearTimeout(deadline)
      try {
        resolve({ status, body: reader.counted(call.limits, COUNT_SEED), head })
      } catch (error) {
        if (status >= FIRST_ERROR) resolve(untold(status, head))
        else reject(error)
      }
    }
    /** For an error only the code matters. */
    const cut = (): void => {
      stream.reset('cancel')
      clearTimeout(deadline)
      reader.drop()
      resolve(untold(status, head))
    }
    const events: StreamEvents = {
      onHeaders(list, end) {
        head = list
        status = Number(list[1])
        if (!end && isEncoded(list)) {
          if (status >= FIRST_ERROR) cut()
          else giveUp(new KubeCallError('the answer is compressed, which was not asked for'))
        } else if (end) done()
      },
      onBody(chunk, end) {
        stream.credit(chunk.length)
        if (status >= FIRST_ERROR && reader.bytes + chunk.length > SHORT_TEXT_BYTES) {
          cut()
          return
        }
        const fault = reader.add(chunk)
        if (fault === 'too-large') giveUp(new AnswerTooLargeError(`more than ${call.limits.bytes} bytes`))
        else if (fault === 'no-room') giveUp(memory.full())
        else if (end) done()
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
    const list = headOf(call, payload)
    const stream = endpoint.open('unary', list, call.credentials, payload === undefined, events, GATEWAY)
    const deadline = setTimeout(() => giveUp(new NoAnswerError(call.timeoutMs)), call.timeoutMs)
    if (payload !== undefined) stream.body(payload, true)
  })
}

export interface CallOneOf {
  readonly endpoints: readonly { readonly url: string; readonly authority: string }[]
  connections(url: string): UpstreamEndpoint | undefined
  /** In [0, 1). */
  random(): number
  /** Timeout of the next attempt; if 0 or less, there is none. */
  timeoutMs(): number
  /** It tests the gateway's credential: 401 and 403 count only if no other endpoint accepts it, and errors, which no user reads, name the endpoint. */
  readonly testsCredential?: boolean
}

/**
 * Tries the endpoints in turn, starting from a random one.
 * @throws {KubeCallError} why the last attempt failed
 * @throws {AnswerTooLargeError} @throws {NoRoomError} at once: other endpoints would give the same response
 */
export async function callOneOf(
  { endpoints, connections, random, timeoutMs, testsCredential = false }: CallOneOf,
  call: Omit<KubeCall, 'authority' | 'timeoutMs'>,
): Promise<KubeAnswer> {
  const start = Math.floor(random() * endpoints.length)
  let last = 'no endpoint of the cluster is ready'
  let refusal: KubeAnswer | undefined
  for (let i = 0; i < Math.min(endpoints.length, MAX_TRIES); i++) {
    const { url = '', authority = '' } = endpoints[(start + i) % endpoints.length] ?? {}
    const upstream = connections(url)
    const leftMs = timeoutMs()
    if (upstream === undefined || leftMs <= 0) continue
    try {
      const answer = await kubeCall(upstream, { ...call, authority, timeoutMs: leftMs })
      // Overloaded or shutting down: another one may respond.
      if (answer.status === 429 || answer.status >= 500)
        last = `${testsCredential ? url : 'upstream'} answered with ${answer.status}`
      else if (testsCredential && (answer.status === 401 || answer.status === 403)) refusal ??= answer
      else return answer
    } catch (error) {
      if (!(error instanceof KubeCallError) || error instanceof AnswerTooLargeError || error instanceof NoRoomError)
        throw error
      last = testsCredential ? `${url}: ${error.message}` : error.message
    }
  }
  if (refusal !== undefined) return refusal
  throw new KubeCallError(last)
}

function headOf(call: KubeCall, payload: Buffer | undefined): HeaderList {
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
    call.accept ?? 'application/json',
    ...(call.fields ?? ['user-agent', USER_AGENT]),
  ]
  if (payload !== undefined) {
    head.push('content-type', call.contentType ?? 'application/json', 'content-length', String(payload.length))
  }
  if (call.token !== '') head.push('authorization', `Bearer ${call.token}`)
  return head
}

function isEncoded(head: HeaderList): boolean {
  const encoding = headerValue(head, 'content-encoding')
  return encoding !== undefined && encoding.toLowerCase() !== 'identity'
}

/** An error whose text is not read. */
function untold(code: number, head: HeaderList): KubeAnswer {
  const message = `upstream answered with ${code}; why it did is longer than the gateway reads, or compressed`
  const body = { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Failure', message, reason: '', code }
  const retryAfter = headerValue(head, 'retry-after')
  const fields = retryAfter === undefined ? [] : ['retry-after', retryAfter]
  return { status: code, body: JSON.stringify(body), head: [':status', String(code), ...fields] }
}
