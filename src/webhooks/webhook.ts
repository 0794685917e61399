// The validating webhook for objects that live as CRDs in a Kubernetes cluster: one path, and health. Only the kube-apiservers of
// that cluster may ask: a review takes time of the main thread, and tells which host names other clusters have.

import type { JsonObject } from '../api/kube/json-object.ts'
import { isRecord } from '../api/kube/object-shape.ts'
import { failure } from '../api/kube/status.ts'
import type { Logger } from '../api/ports/ports.ts'
import type { ResourceKind } from '../api/ports/resource-kind.ts'
import type { HeaderList, Peer, RequestHandler, Stream } from '../api/ports/stream.ts'
import type { PemChecks } from '../api/validation/pem-checks.ts'
import { type Answer, jsonAnswer, statusAnswer, textAnswer } from '../apiserver/http/answer.ts'
import { BodyBudget } from '../apiserver/http/read-body.ts'
import { type AdmissionChecks, reviewAdmission } from './admission-review.ts'
import type { WebhookAuthenticator } from './protection-webhook-callers.ts'
import { ReviewExchange } from './review-exchange.ts'

export interface WebhookDeps {
  /** Asked for OBJECTS_WEBHOOK, as the protection webhook's is for a cell. */
  readonly authenticate: WebhookAuthenticator
  readonly kinds: readonly ResourceKind[]
  /** `kinds` with what the Secrets say that an object names. Never rejects. Default: references are not followed. */
  kindsFor?(object: unknown): Promise<readonly ResourceKind[]>
  readonly pem: PemChecks
  /** All UpstreamClusters as they are known now: no other kind's objects can be in each other's way. */
  clusters(): readonly JsonObject[]
  readonly log: Logger
}

/** What deploy/webhook names; behind it comes the token of kube-apiservers that present no other credential. */
export const WEBHOOK_PATH = '/admission'
/** What its credentials are bound to, where those of the protection webhook are bound to a cell: no cell is called so. */
export const OBJECTS_WEBHOOK = '/admission'
const HEALTH_PATHS: readonly string[] = ['/healthz', '/livez', '/readyz']
/** Of all bodies that are being received. Callers are known. */
const MAX_WAITING_BYTES = 32 * 1024 * 1024
/** kube-apiserver waits 10 s by default, for body and answer. */
const BODY_TIMEOUT_MS = 10_000

const WHERE_FROM = '`portcullis control webhook` prints the configuration with the path that has a token'

export function createWebhookHandler(deps: WebhookDeps): RequestHandler {
  const budget = new BodyBudget(MAX_WAITING_BYTES)
  return (peer, stream, head, end) => {
    const exchange = new WebhookExchange(deps, stream, head, budget)
    exchange.begin(peer, head, end)
    return exchange
  }
}

function objectOf(review: unknown): unknown {
  const request = isRecord(review) ? review['request'] : undefined
  return isRecord(request) ? request['object'] : undefined
}

class WebhookExchange extends ReviewExchange {
  readonly #deps: WebhookDeps

  constructor(deps: WebhookDeps, stream: Stream, head: HeaderList, budget: BodyBudget) {
    super(stream, head, budget)
    this.#deps = deps
  }

  /** Nothing is kept of a body that a stranger sends. */
  begin(peer: Peer, head: HeaderList, end: boolean): void {
    this.start(this.#plainAnswer() ?? this.#refusal(peer, head), end, BODY_TIMEOUT_MS)
  }

  /** Of everything but reviews. */
  #plainAnswer(): Answer | undefined {
    if (HEALTH_PATHS.includes(this.path)) return textAnswer(200, 'ok')
    if (this.path !== WEBHOOK_PATH && !this.path.startsWith(`${WEBHOOK_PATH}/`))
      return textAnswer(404, '404 page not found\n')
    return this.method === 'POST' ? undefined : this.notAllowed()
  }

  /** Of who may not ask; undefined = go on. */
  #refusal(peer: Peer, head: HeaderList): Answer | undefined {
    const token = this.path === WEBHOOK_PATH ? undefined : this.path.slice(WEBHOOK_PATH.length + 1)
    switch (this.#deps.authenticate(peer, head, OBJECTS_WEBHOOK, token)) {
      case 'trusted':
      case 'by-path':
        return undefined
      case 'nobody':
        return statusAnswer(failure('Unauthorized', `Unauthorized: ${WHERE_FROM}`))
      case 'other':
        return statusAnswer(failure('Forbidden', `the credential is not one of this webhook: ${WHERE_FROM}`))
    }
  }

  protected override review(review: unknown): void {
    const { kinds, kindsFor } = this.#deps
    if (kindsFor === undefined) this.#answer(review, kinds)
    else {
      void kindsFor(objectOf(review)).then((found) => this.attempt(() => this.#answer(review, found)))
    }
  }

  #answer(review: unknown, scheme: readonly ResourceKind[]): void {
    const checks: AdmissionChecks = { scheme, pem: this.#deps.pem }
    this.send(jsonAnswer(200, reviewAdmission(review, checks, this.#deps.clusters())))
  }

  protected override failed(error: unknown): void {
    this.#deps.log.error('an AdmissionReview failed inside the gateway', { error })
  }

  protected override sent(): void {
    // Nobody counts them.
  }
}
