// A request to a webhook: a POST whose body is one AdmissionReview. Common to both webhooks: the body is limited in size
// and time, nothing is kept of one that will not be read, and there is one response.

import { headerValue } from '../../gateway/core/request/hop-headers.ts'
import type { HeaderList, Stream, StreamEvents } from '../../kit/api/stream.ts'
import { errorMessage } from '../../kit/api/validation/error-message.ts'
import { inStep } from '../../kit/io/stalls/steps.ts'
import { failure, StatusError, statusError } from '../../kube/api/status.ts'
import { hasMoreValues } from '../../kube/core/objects/value-count.ts'
import { type HttpAnswer, statusAnswer } from '../http/answer.ts'
import type { PortMemory } from '../http/port-memory.ts'
import { BodyReader, MAX_BODY_BYTES } from '../http/read-body.ts'

const EMPTY = Buffer.alloc(0)
/** Values in a review: the object before and after, with its managedFields. */
export const MAX_REVIEW_VALUES = 100_000

export abstract class ReviewExchange implements StreamEvents {
  protected readonly method: string
  /** Without the query. */
  protected path: string
  protected query: string
  readonly #stream: Stream
  readonly #bodies: PortMemory
  #body: BodyReader | undefined
  #deadline: NodeJS.Timeout | undefined
  #answered = false

  constructor(stream: Stream, head: HeaderList, bodies: PortMemory) {
    this.#stream = stream
    this.method = headerValue(head, ':method') ?? ''
    const target = headerValue(head, ':path') ?? ''
    const mark = target.indexOf('?')
    this.path = mark < 0 ? target : target.slice(0, mark)
    this.query = mark < 0 ? '' : target.slice(mark + 1)
    this.#bodies = bodies
  }

  /** The body was received and is JSON. What is thrown becomes the response of `refusal`. */
  protected abstract review(review: unknown): void

  /** Called for bugs of ours. */
  protected abstract failed(error: unknown): void

  /** The response was sent. */
  protected abstract sent(code: number): void

  /**
   * @param plain the response to a request that is not a review; undefined = the body is awaited
   * @param end there is no body
   * @param sender an authenticated caller, the source that is charged for the body
   */
  protected start(plain: HttpAnswer | undefined, end: boolean, timeoutMs: number, sender: string): void {
    if (plain !== undefined) {
      this.send(plain)
      return
    }
    const charge = { source: sender, weight: 1, known: true }
    this.#body = new BodyReader(MAX_BODY_BYTES, 0, this.#bodies, charge)
    if (end) this.onBody(EMPTY, true)
    else {
      const late = statusError('Timeout', 'the AdmissionReview did not come in time')
      this.#deadline = setTimeout(() => this.send(this.#refusal(late)), timeoutMs)
      this.#deadline.unref()
    }
  }

  protected notAllowed(): HttpAnswer {
    const answer = statusAnswer(failure('MethodNotAllowed', `${this.method} is not allowed: POST an AdmissionReview`))
    return { ...answer, headers: [...answer.headers, 'allow', 'POST'] }
  }

  /** Only the first response counts. */
  protected send({ code, headers, body }: HttpAnswer): void {
    if (this.#answered) return
    this.#finish()
    const empty = this.method === 'HEAD'
    this.#stream.headers([':status', String(code), ...headers, 'content-length', String(body.length)], empty)
    if (!empty) this.#stream.body(body, true)
    this.sent(code)
    // The response may wait for its client for a long time, and these are not charged to it.
    this.path = ''
    this.query = ''
  }

  onBody(chunk: Buffer, end: boolean): void {
    if (chunk.length > 0) this.#stream.credit(chunk.length)
    if (this.#answered) return
    this.attempt(() => {
      this.#body?.add(chunk)
      if (!end) return
      clearTimeout(this.#deadline)
      this.review(parseJson(this.#body?.bytes() ?? EMPTY))
    })
  }

  /** Whatever it throws becomes the response. */
  protected attempt(step: () => void): void {
    try {
      inStep('webhook', step)
    } catch (error) {
      this.send(this.#refusal(error))
    }
  }

  #refusal(error: unknown): HttpAnswer {
    if (error instanceof StatusError) return statusAnswer(error.status)
    this.failed(error)
    return statusAnswer(failure('InternalError', 'the review failed inside the gateway; see its log'))
  }

  #finish(): void {
    this.#answered = true
    clearTimeout(this.#deadline)
    this.#body?.drop()
  }

  onHeaders(): void {
    // Only concerns the client's side.
  }

  onTrailers(): void {
    this.onBody(EMPTY, true)
  }

  onDrained(): void {
    // Responses are small.
  }

  onReset(): void {
    this.#finish()
  }
}

function parseJson(bytes: Buffer): unknown {
  const text = bytes.toString('utf8')
  if (hasMoreValues(text, MAX_REVIEW_VALUES)) {
    const message = `Request entity too large: limit is ${MAX_REVIEW_VALUES} values (texts, numbers, lists, maps) of a review`
    throw statusError('RequestEntityTooLarge', message)
  }
  try {
    return JSON.parse(text)
  } catch (error) {
    throw statusError('BadRequest', `the body is not JSON: ${errorMessage(error)}`)
  }
}
