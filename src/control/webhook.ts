// The validating webhook for objects that live as CRDs in a Kubernetes cluster: one path, and health. Whoever reaches it may
// ask: it says what is wrong with an object that the caller has, and stores nothing.

import type { Logger, PemChecks } from '../api/ports.ts'
import type { JsonObject, ResourceKind } from '../api/resource-kind.ts'
import { failure, StatusError, statusError } from '../api/status.ts'
import type { HeaderList, RequestHandler, Stream, StreamEvents } from '../api/stream.ts'
import { headerValue } from '../core/hop-headers.ts'
import { type AdmissionChecks, reviewAdmission } from './admission-review.ts'
import { type Answer, jsonAnswer, statusAnswer, textAnswer } from './answer.ts'
import { BodyBudget, BodyReader, MAX_BODY_BYTES } from './read-body.ts'

export interface WebhookParts {
  readonly kinds: readonly ResourceKind[]
  readonly pem: PemChecks
  /** All UpstreamClusters as they are known now: no other kind's objects can be in each other's way. */
  clusters(): readonly JsonObject[]
  readonly log: Logger
}

/** What deploy/webhook names. */
export const WEBHOOK_PATH = '/admission'
const HEALTH_PATHS: readonly string[] = ['/healthz', '/livez', '/readyz']
/** Of all bodies that are being received: anybody may send them. */
const MAX_WAITING_BYTES = 32 * 1024 * 1024
/** kube-apiserver waits 10 s by default, for body and answer. */
const BODY_TIMEOUT_MS = 10_000
const EMPTY = Buffer.alloc(0)

export function createWebhookHandler(parts: WebhookParts): RequestHandler {
  const budget = new BodyBudget(MAX_WAITING_BYTES)
  return (_peer, stream, head, end) => {
    const exchange = new WebhookExchange(parts, stream, head, budget)
    exchange.begin(end)
    return exchange
  }
}

class WebhookExchange implements StreamEvents {
  readonly #parts: WebhookParts
  readonly #stream: Stream
  readonly #method: string
  readonly #path: string
  readonly #body: BodyReader
  #deadline: NodeJS.Timeout | undefined
  #answered = false

  constructor(parts: WebhookParts, stream: Stream, head: HeaderList, budget: BodyBudget) {
    this.#body = new BodyReader(MAX_BODY_BYTES, budget)
    this.#parts = parts
    this.#stream = stream
    this.#method = headerValue(head, ':method') ?? ''
    this.#path = (headerValue(head, ':path') ?? '').split('?', 1)[0] ?? ''
  }

  /** Nothing is kept of a body that will not be read. */
  begin(end: boolean): void {
    const plain = this.#plainAnswer()
    if (plain !== undefined) this.#send(plain)
    else if (end) this.onBody(EMPTY, true)
    else {
      const late = statusError('Timeout', 'the AdmissionReview did not come in time')
      this.#deadline = setTimeout(() => this.#send(this.#refusal(late)), BODY_TIMEOUT_MS)
      this.#deadline.unref()
    }
  }

  onBody(chunk: Buffer, end: boolean): void {
    if (chunk.length > 0) this.#stream.credit(chunk.length)
    if (this.#answered) return
    try {
      this.#body.add(chunk)
      if (end) this.#send(this.#review())
    } catch (error) {
      this.#send(this.#refusal(error))
    }
  }

  /** Of everything but reviews. */
  #plainAnswer(): Answer | undefined {
    if (HEALTH_PATHS.includes(this.#path)) return textAnswer(200, 'ok')
    if (this.#path !== WEBHOOK_PATH) return textAnswer(404, '404 page not found\n')
    if (this.#method === 'POST') return undefined
    const message = `${this.#method} is not allowed: POST an AdmissionReview`
    return statusAnswer(failure('MethodNotAllowed', message))
  }

  #review(): Answer {
    const { kinds, pem } = this.#parts
    const checks: AdmissionChecks = { scheme: kinds, pem }
    const review = parseJson(this.#body.bytes())
    return jsonAnswer(200, reviewAdmission(review, checks, this.#parts.clusters()))
  }

  #refusal(error: unknown): Answer {
    if (error instanceof StatusError) return statusAnswer(error.status)
    this.#parts.log.error('an AdmissionReview failed inside the gateway', { error })
    return statusAnswer(failure('InternalError', 'the review failed inside the gateway; its log says more'))
  }

  #send({ code, headers, body }: Answer): void {
    this.#finish()
    const empty = this.#method === 'HEAD'
    this.#stream.headers([':status', String(code), ...headers, 'content-length', String(body.length)], empty)
    if (!empty) this.#stream.body(body, true)
  }

  #finish(): void {
    this.#answered = true
    clearTimeout(this.#deadline)
    this.#body.drop()
  }

  onHeaders(): void {
    // Of the client's side only.
  }

  onTrailers(): void {
    this.onBody(EMPTY, true)
  }

  onDrained(): void {
    // Answers are small.
  }

  onReset(): void {
    this.#finish()
  }
}

function parseJson(bytes: Buffer): unknown {
  try {
    return JSON.parse(bytes.toString('utf8'))
  } catch (error) {
    throw statusError('BadRequest', `the body is not JSON: ${error instanceof Error ? error.message : String(error)}`)
  }
}
