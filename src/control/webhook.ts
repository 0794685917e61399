// The validating webhook for objects that live as CRDs in a Kubernetes cluster: one path, and health. Whoever reaches it may
// ask: it says what is wrong with an object that the caller has, and stores nothing.

import { isRecord } from '../api/object-shape.ts'
import type { Logger, PemChecks } from '../api/ports.ts'
import type { JsonObject, ResourceKind } from '../api/resource-kind.ts'
import type { HeaderList, RequestHandler, Stream } from '../api/stream.ts'
import { type AdmissionChecks, reviewAdmission } from './admission-review.ts'
import { type Answer, jsonAnswer, textAnswer } from './answer.ts'
import { BodyBudget } from './read-body.ts'
import { ReviewExchange } from './review-exchange.ts'

export interface WebhookParts {
  readonly kinds: readonly ResourceKind[]
  /** `kinds` with what the Secrets say that an object names. Never rejects. Default: references are not followed. */
  kindsFor?(object: unknown): Promise<readonly ResourceKind[]>
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

export function createWebhookHandler(parts: WebhookParts): RequestHandler {
  const budget = new BodyBudget(MAX_WAITING_BYTES)
  return (_peer, stream, head, end) => {
    const exchange = new WebhookExchange(parts, stream, head, budget)
    exchange.begin(end)
    return exchange
  }
}

function objectOf(review: unknown): unknown {
  const request = isRecord(review) ? review['request'] : undefined
  return isRecord(request) ? request['object'] : undefined
}

class WebhookExchange extends ReviewExchange {
  readonly #parts: WebhookParts

  constructor(parts: WebhookParts, stream: Stream, head: HeaderList, budget: BodyBudget) {
    super(stream, head, budget)
    this.#parts = parts
  }

  begin(end: boolean): void {
    this.start(this.#plainAnswer(), end, BODY_TIMEOUT_MS)
  }

  /** Of everything but reviews. */
  #plainAnswer(): Answer | undefined {
    if (HEALTH_PATHS.includes(this.path)) return textAnswer(200, 'ok')
    if (this.path !== WEBHOOK_PATH) return textAnswer(404, '404 page not found\n')
    return this.method === 'POST' ? undefined : this.notAllowed()
  }

  protected override review(review: unknown): void {
    const { kinds, kindsFor } = this.#parts
    if (kindsFor === undefined) this.#answer(review, kinds)
    else {
      void kindsFor(objectOf(review)).then((found) => this.attempt(() => this.#answer(review, found)))
    }
  }

  #answer(review: unknown, scheme: readonly ResourceKind[]): void {
    const checks: AdmissionChecks = { scheme, pem: this.#parts.pem }
    this.send(jsonAnswer(200, reviewAdmission(review, checks, this.#parts.clusters())))
  }

  protected override failed(error: unknown): void {
    this.#parts.log.error('an AdmissionReview failed inside the gateway', { error })
  }

  protected override sent(): void {
    // Nobody counts them.
  }
}
