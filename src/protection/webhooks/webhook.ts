// Pod protection as a validating admission webhook, for deletions that do not pass the gateway: POST /CELL, or /CELL/TOKEN where the
// cell's kube-apiservers present no other credential. Whatever an AdmissionReview can express is sent as one, with 200: any other
// response is a failed call to kube-apiserver, and its failurePolicy decides.

import { type Answer, jsonAnswer, statusAnswer, textAnswer } from '../../apiserver/http/answer.ts'
import { bodyMemory, type PortMemory } from '../../apiserver/http/port-memory.ts'
import { ReviewExchange } from '../../apiserver/webhooks/review-exchange.ts'
import type { WebhookAuthenticator } from '../../apiserver/webhooks/webhook-callers.ts'
import type { Logger } from '../../kit/api/ports.ts'
import type { HeaderList, Peer, RequestHandler, Stream } from '../../kit/api/stream.ts'
import { parseDuration } from '../../kit/core/text/duration.ts'
import { failure } from '../../kube/api/status.ts'
import { reviewSubject } from '../core/quota/review-subject.ts'
import { failed, reviewAnswer, type WebhookStatus } from './answer.ts'
import { decideReview, type WebhookReviewDeps } from './review.ts'

export interface ProtectionWebhookDeps extends WebhookReviewDeps {
  readonly authenticate: WebhookAuthenticator
  readonly log: Logger
  /** For /readyz: whether the ledger can answer. Default: always. */
  ready?(): boolean
  onReview?(outcome: WebhookOutcome): void
}

/** Called for each answered request other than health checks. */
export interface WebhookOutcome {
  /** '' = one that is not known. */
  readonly cell: string
  readonly cause: 'DeletePod' | 'EvictPod' | 'Unknown'
  /** HttpError: the response was not a review; see `code`. */
  readonly status: WebhookStatus | 'HttpError'
  readonly allowed: boolean
  /** HTTP status code. */
  readonly code: number
  readonly durationMs: number
}

const HEALTH_PATHS: readonly string[] = ['/healthz', '/livez', '/readyz']
/** Limit for all bodies that are being received, divided among cells. Callers are authenticated, and a review of a pod has some 10 KiB. */
const MAX_WAITING_BYTES = 64 * 1024 * 1024
/** kube-apiserver waits this long by default, for body and response. */
const DEFAULT_TIMEOUT_MS = 10_000
/** The response must be sent this long before the caller gives up; at most a tenth of its timeout. */
const MARGIN_MS = 500

export function createProtectionWebhook(deps: ProtectionWebhookDeps): RequestHandler {
  const bodies = bodyMemory('reviews of pod protection', MAX_WAITING_BYTES)
  return (peer, stream, head, end) => {
    const exchange = new ProtectionExchange(deps, stream, head, bodies)
    exchange.begin(peer, head, end)
    return exchange
  }
}

class ProtectionExchange extends ReviewExchange {
  readonly #deps: ProtectionWebhookDeps
  readonly #startMs: number
  #cell = ''
  #unverified = true
  /** The reported outcome; set by a valid review. */
  #outcome: Pick<WebhookOutcome, 'cause' | 'status' | 'allowed'> = {
    cause: 'Unknown',
    status: 'HttpError',
    allowed: false,
  }

  constructor(deps: ProtectionWebhookDeps, stream: Stream, head: HeaderList, bodies: PortMemory) {
    super(stream, head, bodies)
    this.#deps = deps
    this.#startMs = deps.clock.monotonic()
  }

  /** The body of an unauthenticated caller is not kept. */
  begin(peer: Peer, head: HeaderList, end: boolean): void {
    const plain = this.#health() ?? this.#admit(peer, head)
    this.start(plain, end, this.#timeoutMs(), `cell ${JSON.stringify(this.#cell)}`)
  }

  #health(): Answer | undefined {
    const asked = this.method === 'GET' || this.method === 'HEAD'
    if (!asked || !HEALTH_PATHS.includes(this.path)) return undefined
    if (this.path === '/readyz' && this.#deps.ready?.() === false) return textAnswer(503, 'not ready: ledger\n')
    return textAnswer(200, 'ok')
  }

  /** The response to anything but a review of a cell by an authenticated caller; undefined = go on. */
  #admit(peer: Peer, head: HeaderList): Answer | undefined {
    const [cell, token] = segmentsOf(this.path)
    if (cell === undefined) return textAnswer(404, '404 page not found\n')
    if (this.method !== 'POST') return this.notAllowed()
    const caller = this.#deps.authenticate(peer, head, cell, token)
    if (caller === 'unauthenticated') return statusAnswer(failure('Unauthorized', 'Unauthorized'))
    if (caller === 'other') {
      const message = `the credential is not one of cell ${JSON.stringify(cell)}`
      return statusAnswer(failure('Forbidden', message))
    }
    this.#cell = cell
    this.#unverified = caller === 'by-path'
    return undefined
  }

  #timeoutMs(): number {
    const asked = parseDuration(new URLSearchParams(this.query).get('timeout') ?? '')
    const timeoutMs = asked !== undefined && asked > 0 ? asked : DEFAULT_TIMEOUT_MS
    return timeoutMs - Math.min(MARGIN_MS, timeoutMs / 10)
  }

  protected override review(review: unknown): void {
    const subject = reviewSubject(review)
    const deadlineMs = this.#startMs + this.#timeoutMs()
    const asked = { cell: this.#cell, subject, unverified: this.#unverified, deadlineMs }
    decideReview(this.#deps, asked)
      .catch((error: unknown) => {
        this.#deps.log.error('a review of pod protection failed inside the gateway', { cell: this.#cell, error })
        const { shadow = false, failurePolicy = 'Fail' } = this.#deps.cell(this.#cell)?.protection ?? {}
        return failed('the review failed inside the gateway; see its log', shadow ? 'Ignore' : failurePolicy)
      })
      .then((decision) => {
        const { status, refusal } = decision
        this.#outcome = { cause: subject.type, status, allowed: refusal === undefined }
        this.send(jsonAnswer(200, reviewAnswer(subject.uid, decision)))
      })
      .catch((error: unknown) => this.#deps.log.error('a review of pod protection could not be answered', { error }))
  }

  protected override failed(error: unknown): void {
    this.#deps.log.error('an AdmissionReview failed inside the gateway', { cell: this.#cell, error })
  }

  protected override sent(code: number): void {
    // Health.
    if (this.#outcome.status === 'HttpError' && code < 400) return
    const cell = this.#cell !== '' && this.#deps.cell(this.#cell) !== undefined ? this.#cell : ''
    const durationMs = this.#deps.clock.monotonic() - this.#startMs
    this.#deps.onReview?.({ ...this.#outcome, cell, code, durationMs })
  }
}

/** `/CELL` or `/CELL/TOKEN`; nothing for any other path. */
function segmentsOf(path: string): readonly string[] {
  const [root, ...raw] = path.split('/')
  if (root !== '' || raw.length < 1 || raw.length > 2 || raw.includes('')) return []
  try {
    return raw.map((segment) => decodeURIComponent(segment))
  } catch {
    return []
  }
}
