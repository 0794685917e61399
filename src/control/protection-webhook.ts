// Pod protection as a validating admission webhook, for deletions that do not pass the gateway: POST /CELL, or /CELL/TOKEN where the
// cell's kube-apiservers present no other credential. What can be said in an AdmissionReview is said there, with 200: any other
// answer is for kube-apiserver a call that failed, and its failurePolicy decides.

import type { Logger } from '../api/ports.ts'
import { failure, StatusError, statusError } from '../api/status.ts'
import type { HeaderList, Peer, RequestHandler, Stream, StreamEvents } from '../api/stream.ts'
import { parseDuration } from '../core/duration.ts'
import { headerValue } from '../core/hop-headers.ts'
import { type ReviewSubject, reviewSubject } from '../core/protection/review-subject.ts'
import { type Answer, jsonAnswer, statusAnswer, textAnswer } from './answer.ts'
import { failed, reviewAnswer, type WebhookStatus } from './protection-webhook-answer.ts'
import type { WebhookAuthenticator } from './protection-webhook-callers.ts'
import { decideReview, type WebhookReviewParts } from './protection-webhook-review.ts'
import { BodyBudget, BodyReader, MAX_BODY_BYTES } from './read-body.ts'

export interface ProtectionWebhookParts extends WebhookReviewParts {
  readonly authenticate: WebhookAuthenticator
  readonly log: Logger
  /** For /readyz: whether verdicts can be had. Default: always. */
  ready?(): boolean
  onReview?(outcome: WebhookOutcome): void
}

/** One request that was no health check, once it is answered. */
export interface WebhookOutcome {
  /** '' = one that is not known. */
  readonly cell: string
  readonly cause: 'DeletePod' | 'EvictPod' | 'Unknown'
  /** HttpError: no review was answered; `code` says more. */
  readonly status: WebhookStatus | 'HttpError'
  readonly allowed: boolean
  /** Of HTTP. */
  readonly code: number
  readonly durationMs: number
}

const HEALTH_PATHS: readonly string[] = ['/healthz', '/livez', '/readyz']
/** Of all bodies that are being received. Callers are known, and a review of a pod has some 10 KiB. */
const MAX_WAITING_BYTES = 64 * 1024 * 1024
/** kube-apiserver waits so long by default, for body and answer. */
const DEFAULT_TIMEOUT_MS = 10_000
/** So much before the caller gives up, and at most a tenth of its time, an answer has to be on its way. */
const MARGIN_MS = 500
const EMPTY = Buffer.alloc(0)

export function createProtectionWebhook(parts: ProtectionWebhookParts): RequestHandler {
  const budget = new BodyBudget(MAX_WAITING_BYTES)
  return (peer, stream, head, end) => {
    const exchange = new ReviewExchange(parts, stream, head, budget)
    exchange.begin(peer, head, end)
    return exchange
  }
}

class ReviewExchange implements StreamEvents {
  readonly #parts: ProtectionWebhookParts
  readonly #stream: Stream
  readonly #method: string
  readonly #path: string
  readonly #query: string
  readonly #body: BodyReader
  readonly #startMs: number
  #cell = ''
  #doubted = true
  #timer: NodeJS.Timeout | undefined
  #received = false
  #answered = false

  constructor(parts: ProtectionWebhookParts, stream: Stream, head: HeaderList, budget: BodyBudget) {
    this.#parts = parts
    this.#stream = stream
    this.#method = headerValue(head, ':method') ?? ''
    const [path = '', ...query] = (headerValue(head, ':path') ?? '').split('?')
    this.#path = path
    this.#query = query.join('?')
    this.#body = new BodyReader(MAX_BODY_BYTES, budget)
    this.#startMs = parts.clock.monotonic()
  }

  /** Nothing is kept of a body that will not be read, nor of one that a stranger sends. */
  begin(peer: Peer, head: HeaderList, end: boolean): void {
    const plain = this.#health() ?? this.#admit(peer, head)
    if (plain !== undefined) this.#send(plain)
    else if (end) this.onBody(EMPTY, true)
    else {
      const late = statusError('Timeout', 'the AdmissionReview did not come in time')
      this.#timer = setTimeout(() => this.#send(this.#refusal(late)), this.#timeoutMs())
      this.#timer.unref()
    }
  }

  onBody(chunk: Buffer, end: boolean): void {
    if (chunk.length > 0) this.#stream.credit(chunk.length)
    if (this.#answered || this.#received) return
    try {
      this.#body.add(chunk)
      if (!end) return
      this.#received = true
      clearTimeout(this.#timer)
      this.#review(reviewSubject(parseJson(this.#body.bytes())))
    } catch (error) {
      this.#send(this.#refusal(error))
    }
  }

  #health(): Answer | undefined {
    const asked = this.#method === 'GET' || this.#method === 'HEAD'
    if (!asked || !HEALTH_PATHS.includes(this.#path)) return undefined
    if (this.#path === '/readyz' && this.#parts.ready?.() === false) return textAnswer(503, 'not ready: ledger\n')
    return textAnswer(200, 'ok')
  }

  /** What is answered to a request that is no review of a cell by one who may ask; undefined = go on. */
  #admit(peer: Peer, head: HeaderList): Answer | undefined {
    const [cell, token] = segmentsOf(this.#path)
    if (cell === undefined) return textAnswer(404, '404 page not found\n')
    if (this.#method !== 'POST') {
      const message = `${this.#method} is not allowed: POST an AdmissionReview`
      const answer = statusAnswer(failure('MethodNotAllowed', message))
      return { ...answer, headers: [...answer.headers, 'allow', 'POST'] }
    }
    const caller = this.#parts.authenticate(peer, head, cell, token)
    if (caller === 'nobody') return statusAnswer(failure('Unauthorized', 'Unauthorized'))
    if (caller === 'other') {
      const message = `the credential is not one of cell ${JSON.stringify(cell)}`
      return statusAnswer(failure('Forbidden', message))
    }
    this.#cell = cell
    this.#doubted = caller === 'by-path'
    return undefined
  }

  #timeoutMs(): number {
    const asked = parseDuration(new URLSearchParams(this.#query).get('timeout') ?? '')
    const timeoutMs = asked !== undefined && asked > 0 ? asked : DEFAULT_TIMEOUT_MS
    return timeoutMs - Math.min(MARGIN_MS, timeoutMs / 10)
  }

  #review(subject: ReviewSubject): void {
    const deadlineMs = this.#startMs + this.#timeoutMs()
    const asked = { cell: this.#cell, subject, doubted: this.#doubted, deadlineMs }
    decideReview(this.#parts, asked)
      .catch((error: unknown) => {
        this.#parts.log.error('a review of pod protection failed inside the gateway', { cell: this.#cell, error })
        const { shadow = false, failurePolicy = 'Fail' } = this.#parts.cell(this.#cell)?.protection ?? {}
        return failed('the review failed inside the gateway; its log says more', shadow ? 'Ignore' : failurePolicy)
      })
      .then((decision) => {
        const { status, refusal } = decision
        const answer = jsonAnswer(200, reviewAnswer(subject.uid, decision))
        this.#send(answer, { cause: subject.type, status, allowed: refusal === undefined })
      })
      .catch((error: unknown) => this.#parts.log.error('a review of pod protection could not be answered', { error }))
  }

  #refusal(error: unknown): Answer {
    if (error instanceof StatusError) return statusAnswer(error.status)
    this.#parts.log.error('an AdmissionReview failed inside the gateway', { cell: this.#cell, error })
    return statusAnswer(failure('InternalError', 'the review failed inside the gateway; its log says more'))
  }

  #send(
    { code, headers, body }: Answer,
    outcome: Pick<WebhookOutcome, 'cause' | 'status' | 'allowed'> = {
      cause: 'Unknown',
      status: 'HttpError',
      allowed: false,
    },
  ): void {
    if (this.#answered) return
    this.#finish()
    const empty = this.#method === 'HEAD'
    this.#stream.headers([':status', String(code), ...headers, 'content-length', String(body.length)], empty)
    if (!empty) this.#stream.body(body, true)
    if (outcome.status === 'HttpError' && code < 400) return
    const cell = this.#cell !== '' && this.#parts.cell(this.#cell) !== undefined ? this.#cell : ''
    const durationMs = this.#parts.clock.monotonic() - this.#startMs
    this.#parts.onReview?.({ ...outcome, cell, code, durationMs })
  }

  #finish(): void {
    this.#answered = true
    clearTimeout(this.#timer)
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

function parseJson(bytes: Buffer): unknown {
  try {
    return JSON.parse(bytes.toString('utf8'))
  } catch (error) {
    throw statusError('BadRequest', `the body is not JSON: ${error instanceof Error ? error.message : String(error)}`)
  }
}
