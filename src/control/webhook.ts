// The validating webhook for objects that live as CRDs in a Kubernetes cluster: one path, and health. Whoever reaches it may
// ask: it says what is wrong with an object that the caller has, and stores nothing.

import type { Logger, PemChecks } from '../api/ports.ts'
import type { JsonObject, ResourceKind } from '../api/resource-kind.ts'
import { failure, StatusError, statusError } from '../api/status.ts'
import type { HeaderList, RequestHandler, Stream, StreamEvents } from '../api/stream.ts'
import { headerValue } from '../core/hop-headers.ts'
import { type AdmissionChecks, reviewAdmission } from './admission-review.ts'
import { type Answer, jsonAnswer, statusAnswer, textAnswer } from './answer.ts'
import { BodyReader } from './read-body.ts'

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

export function createWebhookHandler(parts: WebhookParts): RequestHandler {
  return (_peer, stream, head, end) => {
    const exchange = new WebhookExchange(parts, stream, head)
    if (end) exchange.onBody(Buffer.alloc(0), true)
    return exchange
  }
}

class WebhookExchange implements StreamEvents {
  readonly #parts: WebhookParts
  readonly #stream: Stream
  readonly #method: string
  readonly #path: string
  readonly #body = new BodyReader()
  #answered = false

  constructor(parts: WebhookParts, stream: Stream, head: HeaderList) {
    this.#parts = parts
    this.#stream = stream
    this.#method = headerValue(head, ':method') ?? ''
    this.#path = (headerValue(head, ':path') ?? '').split('?', 1)[0] ?? ''
  }

  onBody(chunk: Buffer, end: boolean): void {
    this.#stream.credit(chunk.length)
    if (this.#answered) return
    try {
      this.#body.add(chunk)
      if (end) this.#send(this.#answer())
    } catch (error) {
      this.#send(this.#refusal(error))
    }
  }

  #answer(): Answer {
    if (HEALTH_PATHS.includes(this.#path)) return textAnswer(200, 'ok')
    if (this.#path !== WEBHOOK_PATH) return textAnswer(404, '404 page not found\n')
    if (this.#method !== 'POST')
      throw statusError('MethodNotAllowed', `${this.#method} is not allowed: POST an AdmissionReview`)
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
    this.#answered = true
    this.#stream.headers([':status', String(code), ...headers, 'content-length', String(body.length)], false)
    this.#stream.body(body, true)
  }

  onHeaders(): void {
    // Of the client's side only.
  }

  onTrailers(): void {
    this.onBody(Buffer.alloc(0), true)
  }

  onDrained(): void {
    // Answers are small.
  }

  onReset(): void {
    this.#answered = true
  }
}

function parseJson(bytes: Buffer): unknown {
  try {
    return JSON.parse(bytes.toString('utf8'))
  } catch (error) {
    throw statusError('BadRequest', `the body is not JSON: ${error instanceof Error ? error.message : String(error)}`)
  }
}
