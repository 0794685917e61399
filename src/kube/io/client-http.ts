// HTTP to one API server, with undici over our own connections. client-node opens a new agent, and thus a new TLS connection, for every request,
// rereads certificates from disk each time, and gives no control over deadlines. HTTP/1.1: each watch has its own connection, so that TCP keep-alive
// detects a dead path without PINGs.

import { setTimeout as sleep } from 'node:timers/promises'
import { Agent, type Dispatcher, ProxyAgent } from 'undici'
import type { JsonObject } from '../../kit/api/json/json-object.ts'
import { isRecord, textOf } from '../../kit/api/json/object-shape.ts'
import type { Charge } from '../../kit/api/stream.ts'
import { serverCharge } from '../../kit/core/shares/charge.ts'
import { guardedConnector } from '../../kit/io/dial/dial-guard.ts'
import { http1Connector } from '../../kit/io/dial/http1-connector.ts'
import { systemClock } from '../../kit/io/world/clock.ts'
import type { WireEncoding } from '../api/object-client.ts'
import { StatusError } from '../api/status.ts'
import { type AnswerLimits, OBJECT, SHORT_TEXT_BYTES } from '../core/answers/answer-limits.ts'
import { AnswerReader } from '../core/answers/answer-reader.ts'
import { KubeCallError } from '../core/answers/call-errors.ts'
import { readAnswer } from './answers/fetch-bounded.ts'
import { countInterimHeads } from './answers/interim-heads.ts'
import { AnswerBytes, COUNT_SEED } from './answers/thread-answers.ts'
import { faultOf, statusErrorOf } from './client-errors.ts'
import { type KubeCallEvents, type KubeCallTarget, NO_KUBE_CALL_EVENTS } from './client-events.ts'
import type { KubeAccess } from './config-access.ts'

/** Provides server and credentials; called for each attempt of each request. */
export interface KubeAccessSource {
  /** For messages that concern no particular request. */
  readonly server: string
  /** The source that is charged for the memory of responses while they arrive. Default: the server, as one named by a setting. */
  readonly charge?: Charge
  /** @throws (rejects) an Error for people if there is no server or no credential */
  access(): Promise<KubeAccess>
  /** After a 401: true if there may be new credentials now. */
  renew(): boolean
  /** The Warning header fields of each response with code 200. */
  warned?(values: readonly string[]): void
  /** Whether a watch to this server may continue; called every second. Default: always. */
  stillGood?(access: KubeAccess): boolean
}

interface KubeHttpRequest {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** Raw path below the server's URL, with the query. */
  readonly path: string
  readonly body?: unknown
  /** Content type of `body`. Default application/json. */
  readonly contentType?: string
  /** Limits of the response. Default: those of one object. */
  readonly limits?: AnswerLimits
  /** Encoding of the response. Default: JSON. */
  readonly encoding?: WireEncoding | undefined
}

/** Deadline of a call including its response; kube-apiserver itself gives up after 60 s. */
const CALL_TIMEOUT_MS = 30_000
const CONNECT_TIMEOUT_MS = 10_000
/** A watch's response head arrives at once, so this is how long it takes to detect a dead kept connection. */
const WATCH_HEAD_TIMEOUT_MS = 10_000
/** The kernel probes after this long without data, then every second; ten unanswered probes end the connection (libuv). */
const KEEP_ALIVE_MS = 15_000
/** Below kube-apiserver's 90 s, so that no request meets a closing connection. */
const IDLE_MS = 30_000
const MAX_CONNECTIONS = 32
/** How often a server's `Retry-After` is honoured. */
const MAX_RESENDS = 3
const LONGEST_RETRY_AFTER_S = 10
const USER_AGENT = 'portcullis'
const ACCEPT: Readonly<Record<WireEncoding, string>> = {
  json: 'application/json',
  protobuf: 'application/vnd.kubernetes.protobuf',
}
const NO_BODY: Buffer = Buffer.alloc(0)
/** How often a watch is checked for whether it may continue. */
const LOOK_MS = 1_000

interface Answer {
  readonly response: Dispatcher.ResponseData
  readonly access: KubeAccess
}

/** One call with all its attempts. */
interface Call extends KubeCallTarget {
  readonly path: string
  readonly contentType: string
  readonly payload: string | null
  readonly limits: AnswerLimits
  readonly encoding: WireEncoding
  /** Server of the last attempt; '' = none yet. */
  server: string
  /** When it began. */
  beganMs: number
}

function callOf(request: KubeHttpRequest): Call {
  const { method, path, body, contentType = 'application/json', limits = OBJECT, encoding = 'json' } = request
  const payload = body === undefined ? null : JSON.stringify(body)
  return { method, path, contentType, payload, limits, encoding, server: '', beganMs: 0 }
}

export class KubeHttp {
  readonly #source: KubeAccessSource
  readonly #timeoutMs: number
  readonly #events: KubeCallEvents
  readonly #serverCharge: Charge
  #agent: Dispatcher | undefined
  #agentKey = ''

  constructor(
    source: KubeAccessSource,
    timeoutMs: number = CALL_TIMEOUT_MS,
    events: KubeCallEvents = NO_KUBE_CALL_EVENTS,
  ) {
    this.#source = source
    this.#timeoutMs = timeoutMs
    this.#events = events
    this.#serverCharge = serverCharge(source.server)
  }

  get server(): string {
    return this.#source.server
  }

  /** The source that is charged for the memory of responses while they arrive. */
  get charge(): Charge {
    return this.#source.charge ?? this.#serverCharge
  }

  /**
   * @throws {StatusError} (rejects) if the server refuses
   * @throws {AnswerTooLargeError} (rejects) if the response exceeds `limits`
   * @throws {Error} (rejects) if there is no response
   */
  async call(request: KubeHttpRequest, end?: AbortSignal): Promise<JsonObject> {
    const call = callOf(request)
    const bytes = await this.#answered(call, end)
    let value: unknown
    try {
      value = JSON.parse(bytes.toString('utf8'))
    } catch {
      value = undefined
    }
    if (!isRecord(value)) throw new Error(`${call.server} answered with something that is not a JSON object`)
    return value
  }

  /** The unparsed body of the answer. Rejects like `call`. */
  async bytes(request: KubeHttpRequest, end?: AbortSignal): Promise<Buffer> {
    return await this.#answered(callOf(request), end)
  }

  /** The body of an endless response. Rejects like `call`; iterating throws plain Errors. */
  async open(
    path: string,
    silenceMs: number,
    signal: AbortSignal,
    encoding?: WireEncoding,
  ): Promise<AsyncIterable<Buffer>> {
    const call = callOf({ method: 'GET', path, encoding })
    const headMs = Math.min(this.#timeoutMs, WATCH_HEAD_TIMEOUT_MS)
    const answer = await this.#send(call, signal, headMs, silenceMs)
    if (answer.response.statusCode !== 200) throw await this.#refusal(call, answer)
    refuseEncoded(answer)
    this.#ended(call, undefined)
    return this.#chunks(answer)
  }

  /**
   * POSTs JSON to the server's URL itself, for webhooks; only the status code of the response counts, and some text of an error. Rejects like `call`,
   * and never retries.
   */
  async post(payload: string, end: AbortSignal): Promise<void> {
    const signal = AbortSignal.any([AbortSignal.timeout(this.#timeoutMs), end])
    const call: Call = { ...callOf({ method: 'POST', path: '' }), payload }
    const answer = await this.#send(call, signal, this.#timeoutMs, this.#timeoutMs)
    const { statusCode, body } = answer.response
    if (statusCode >= 300) throw await this.#refusal(call, answer)
    // Delivered, whatever happens to the rest of the response.
    await body.dump({ limit: SHORT_TEXT_BYTES, signal }).catch(() => undefined)
    this.#ended(call, 0)
  }

  async close(): Promise<void> {
    await this.#agent?.destroy()
  }

  async #answered(call: Call, end?: AbortSignal): Promise<Buffer> {
    const timeout = AbortSignal.timeout(this.#timeoutMs)
    const signal = end === undefined ? timeout : AbortSignal.any([timeout, end])
    for (let resends = 0; ; resends++) {
      try {
        return await this.#callOnce(call, signal)
      } catch (error) {
        const seconds = resends < MAX_RESENDS ? retryAfterOf(error) : undefined
        if (seconds === undefined) throw error
        await sleep(seconds * 1000, undefined, { signal }).catch(() => {
          throw error
        })
        this.#events.resent(call, (error as StatusError).code)
      }
    }
  }

  async #callOnce(call: Call, signal: AbortSignal): Promise<Buffer> {
    const answer = await this.#send(call, signal, this.#timeoutMs, this.#timeoutMs)
    if (answer.response.statusCode >= 300) throw await this.#refusal(call, answer)
    return await this.#bytes(call, answer)
  }

  async #send(call: Call, signal: AbortSignal, headersTimeout: number, bodyTimeout: number): Promise<Answer> {
    let brokenBefore = false
    for (;;) {
      const access = await this.#source.access()
      try {
        const response = await this.#attempt(call, access, signal, headersTimeout, bodyTimeout)
        if (response.statusCode !== 401 || !this.#source.renew()) return { response, access }
        await response.body.dump({ limit: SHORT_TEXT_BYTES, signal })
      } catch (error) {
        // The server closing an idle connection says nothing about the server.
        if (call.method !== 'GET' || brokenBefore || !isBroken(error)) throw noAnswer(access, error)
        brokenBefore = true
      }
    }
  }

  async #attempt(
    call: Call,
    access: KubeAccess,
    signal: AbortSignal,
    headersTimeout: number,
    bodyTimeout: number,
  ): Promise<Dispatcher.ResponseData> {
    call.server = access.server
    call.beganMs = systemClock.monotonic()
    try {
      const response = await this.#dispatch(call, access, signal, headersTimeout, bodyTimeout)
      this.#events.answered(call, String(response.statusCode))
      if (response.statusCode === 200) this.#source.warned?.([response.headers['warning'] ?? []].flat())
      return response
    } catch (error) {
      this.#events.answered(call, '<error>')
      throw error
    }
  }

  /** @param answerBytes undefined = a watch, of which only the head has arrived */
  #ended(call: Call, answerBytes: number | undefined): void {
    const requestBytes = call.payload === null ? 0 : Buffer.byteLength(call.payload)
    this.#events.ended(call, systemClock.monotonic() - call.beganMs, requestBytes, answerBytes)
  }

  #dispatch(
    { method, path, payload, contentType, encoding }: Call,
    access: KubeAccess,
    signal: AbortSignal,
    headersTimeout: number,
    bodyTimeout: number,
  ): Promise<Dispatcher.ResponseData> {
    const { origin, pathname } = new URL(access.server)
    return this.#agentFor(access).request({
      origin,
      path: `${pathname.replace(/\/$/, '')}${path}` || '/',
      method,
      headers: {
        accept: ACCEPT[encoding],
        'user-agent': USER_AGENT,
        ...(payload !== null && { 'content-type': contentType }),
        ...access.headers,
      },
      body: payload,
      signal,
      headersTimeout,
      bodyTimeout,
      onInfo: countInterimHeads(),
    })
  }

  /** A new one if the certificates change; running requests finish on the old one. */
  #agentFor(access: KubeAccess): Dispatcher {
    const { tls, proxyUrl, guard } = access
    const key = JSON.stringify([tls, proxyUrl])
    if (this.#agent !== undefined && key === this.#agentKey) return this.#agent
    this.#agent?.close().catch(() => undefined)
    const identity = {
      ...(tls.ca !== '' && { ca: tls.ca }),
      ...(tls.cert !== '' && { cert: tls.cert, key: tls.key }),
      ...(tls.serverName !== '' && { servername: tls.serverName }),
      rejectUnauthorized: !tls.insecure,
    }
    const keepAlive = { keepAlive: true, keepAliveInitialDelay: KEEP_ALIVE_MS, timeout: CONNECT_TIMEOUT_MS }
    const options = {
      allowH2: false,
      connections: MAX_CONNECTIONS,
      keepAliveTimeout: IDLE_MS,
      keepAliveMaxTimeout: IDLE_MS,
    }
    const connect = { ...identity, ...keepAlive, allowH2: false }
    this.#agent =
      proxyUrl === ''
        ? new Agent({
            ...options,
            connect:
              guard === undefined
                ? http1Connector(connect)
                : guardedConnector((host, port) => guard.to(host, port), connect),
          })
        : new ProxyAgent({ ...options, uri: proxyUrl, requestTls: identity, connect: keepAlive })
    this.#agentKey = key
    return this.#agent
  }

  /** Only the code matters: a long text is truncated. */
  async #refusal(call: Call, { response, access }: Answer): Promise<StatusError> {
    const { statusCode, headers, body } = response
    const retryAfter = textOf(headers['retry-after'])
    if (isEncoded(headers)) {
      discard(body)
      return statusErrorOf(statusCode, NO_BODY, retryAfter)
    }
    const reader = new AnswerReader(SHORT_TEXT_BYTES, new AnswerBytes(this.charge))
    let text = NO_BODY
    // A watch's signal has no deadline.
    const late = setTimeout(() => body.destroy(new Error('no answer in time')), this.#timeoutMs)
    try {
      for await (const chunk of body) {
        const rest = SHORT_TEXT_BYTES - reader.bytes
        if (reader.add(chunk.length > rest ? chunk.subarray(0, rest) : chunk) !== undefined || chunk.length > rest)
          break
      }
      this.#ended(call, reader.bytes)
    } catch (error) {
      throw noAnswer(access, error)
    } finally {
      clearTimeout(late)
      text = reader.whole()
    }
    return statusErrorOf(statusCode, text, retryAfter)
  }

  /** May be parsed. */
  async #bytes(call: Call, answer: Answer): Promise<Buffer> {
    refuseEncoded(answer)
    const { response, access } = answer
    const reader = await readAnswer(response.body, call.limits.bytes, this.charge).catch((error: unknown) => {
      throw error instanceof KubeCallError ? error : noAnswer(access, error)
    })
    this.#ended(call, reader.bytes)
    return call.encoding === 'json' ? reader.countedBytes(call.limits, COUNT_SEED) : reader.whole()
  }

  async *#chunks({ response, access }: Answer): AsyncIterable<Buffer> {
    const look = this.#lookAfter(response, access)
    try {
      for await (const chunk of response.body) yield chunk
    } catch (error) {
      throw noAnswer(access, error)
    } finally {
      clearInterval(look)
    }
  }

  /** A watch lasts for minutes; meanwhile its credentials may become outdated. */
  #lookAfter({ body }: Dispatcher.ResponseData, access: KubeAccess): NodeJS.Timeout | undefined {
    if (this.#source.stillGood === undefined) return undefined
    const look = setInterval(() => {
      if (this.#source.stillGood?.(access) === false) body.destroy(new Error('moving to another server'))
    }, LOOK_MS)
    look.unref()
    return look
  }
}

/** @throws {KubeCallError} if it is compressed: we never ask for that, and the decoded size would have to be counted, too */
function refuseEncoded({ response, access }: Answer): void {
  if (!isEncoded(response.headers)) return
  discard(response.body)
  throw new KubeCallError(`${access.server} sent a compressed answer, which was not asked for`)
}

/** Ends the response and its connection. */
function discard(body: Dispatcher.ResponseData['body']): void {
  body.on('error', () => undefined)
  body.destroy()
}

function isEncoded(headers: Dispatcher.ResponseData['headers']): boolean {
  const encoding = textOf(headers['content-encoding'])
  return headers['content-encoding'] !== undefined && encoding.toLowerCase() !== 'identity'
}

function noAnswer({ server }: KubeAccess, error: unknown): Error {
  return new Error(`no answer from ${server}: ${faultOf(error)}`)
}

function isBroken(error: unknown): boolean {
  const code = error instanceof Error && 'code' in error ? error.code : ''
  return code === 'ECONNRESET' || code === 'EPIPE' || code === 'UND_ERR_SOCKET'
}

/** Like client-go: after 429 and 5xx with Retry-After a request is retried, whatever the verb. */
function retryAfterOf(error: unknown): number | undefined {
  if (!(error instanceof StatusError) || (error.code !== 429 && error.code < 500)) return undefined
  const seconds = error.status.details?.retryAfterSeconds
  return seconds !== undefined && seconds <= LONGEST_RETRY_AFTER_S ? Math.max(1, seconds) : undefined
}
