// Reads the answers of an endpoint, one for each request: see message-reader.ts. What comes before there is a request, or behind its answer, is not read.

import { MAX_INTERIM_ANSWERS } from '../../../../http2/client.ts'
import { MAX_FIELDS } from '../../../../http2/hpack/decoder.ts'
import { CLIENT_SIDE_LIMITS } from '../../../../http2/limits.ts'
import type { HeaderList } from '../../../../kit/api/stream.ts'
import { CLOSE, KEEP_ALIVE, minorVersion, SPACE, VALUE_OCTETS, VERSION_BYTES, ZERO } from '../../http1/lines.ts'
import {
  CHUNK_LINE,
  ENDED,
  ENDLESS_BODY,
  FIELD_OVERHEAD,
  FIRST_LINE,
  type MessageLimits,
  MessageReader,
  type MessageSink,
  NO_LENGTH,
  SIZED_BODY,
} from '../../http1/message-reader.ts'

/** Gets what was read. */
export interface AnswerSink extends MessageSink {
  /** A head; `end` = nothing follows. Of interim answers (1xx), another one follows. */
  onHead(list: HeaderList, end: boolean): void
  /** The endpoint does not speak HTTP/1.1: nothing more is read. */
  onMalformed(why: string): void
  /** An answer that we do not take, from an endpoint that may be sound: it may come from a pod. Nothing more is read. */
  onRefused(): void
}

const LIMITS: MessageLimits = { maxHeaderBytes: CLIENT_SIDE_LIMITS.maxHeaderListBytes, maxFields: MAX_FIELDS }
const STATUS_DIGITS = 3
/** Version, SP and status. */
const STATUS_BYTES = VERSION_BYTES + 1 + STATUS_DIGITS
const LEAST_STATUS = 100
const MOST_STATUS = 599
const PSEUDO_BYTES = ':status'.length + STATUS_DIGITS + FIELD_OVERHEAD
const DEFAULT_KEEP_ALIVE = -1

export class Http1AnswerReader extends MessageReader {
  readonly #answers: AnswerSink
  /** The request was HEAD: its answer has no body, whatever its fields say. */
  #isHead = false
  /** Interim answers to the request. */
  #interim = 0
  #status = 0
  #isHttp10 = false
  /** Values of Keep-Alive. */
  #keepAlive = ''
  /** The endpoint goes on to use the connection, as far as the answer says. */
  keepsAlive = false
  /** For how long, if it says so; -1 = it does not. */
  keepAliveSeconds: number = DEFAULT_KEEP_ALIVE

  constructor(sink: AnswerSink, limits: MessageLimits = LIMITS) {
    super(sink, limits, ENDED)
    this.#answers = sink
  }

  /** A request is sent: its answer is read. */
  begin(isHead: boolean): void {
    this.#isHead = isHead
    this.#interim = 0
    this.keepsAlive = false
    this.keepAliveSeconds = DEFAULT_KEEP_ALIVE
    this.state = FIRST_LINE
  }

  /** The answer is complete, or none is awaited. */
  get hasEnded(): boolean {
    return this.state === ENDED
  }

  /** The body is complete when the connection ends. */
  get isUntilClose(): boolean {
    return this.state === ENDLESS_BODY
  }

  protected override onFirstLine(bytes: Buffer, from: number, to: number): void {
    const minor = to - from < STATUS_BYTES ? -1 : minorVersion(bytes, from)
    const status = minor < 0 ? -1 : statusOf(bytes, from + VERSION_BYTES, to)
    if (status < 0) {
      this.onMalformed('the first line of the answer is not a status line of HTTP/1.1')
      return
    }
    // RFC 9110 section 15: HTTP/2 clients would take it for a broken connection.
    if (status < LEAST_STATUS || status > MOST_STATUS) {
      this.onTooLarge()
      return
    }
    this.#status = status
    this.#isHttp10 = minor === 0
    this.beginHead([':status', String(status)], PSEUDO_BYTES)
  }

  protected override understand(name: string, value: string): boolean {
    if (name !== 'keep-alive') return super.understand(name, value)
    this.#keepAlive += this.#keepAlive === '' ? value : `,${value}`
    return true
  }

  protected override onHeadEnd(): void {
    const { isChunked, length, list } = this
    const status = this.#status
    // RFC 9112 sections 6.1 and 6.3: where it ends, another reader may see differently. The gateway asks for no other protocol.
    if (isChunked && (this.#isHttp10 || length !== NO_LENGTH)) this.onMalformed('the answer has two lengths')
    else if (status === 101) this.onMalformed('the answer switches protocols, which was not asked for')
    else if (status < 200 && this.#isLast) this.onMalformed('an interim answer ends the connection, or has a body')
    else if (status < 200) this.#onInterim(list)
    else this.#onFinal(list, status)
  }

  /** What is said of the head, or of HTTP/1.0, lets nothing follow that is an answer (RFC 9110 section 15.2). */
  get #isLast(): boolean {
    return this.#isHttp10 || (this.options & CLOSE) !== 0 || this.isChunked || this.length > 0
  }

  #onInterim(list: HeaderList): void {
    this.forget()
    this.state = FIRST_LINE
    if (++this.#interim > MAX_INTERIM_ANSWERS) this.onTooLarge()
    // We asked for no 100 (Continue), and have told a client that did: see stream.ts.
    else if (this.#status !== 100) this.#answers.onHead(list, false)
  }

  /** RFC 9112 section 6.3. */
  #onFinal(list: HeaderList, status: number): void {
    const { isChunked, length, options } = this
    const isBodiless = this.#isHead || status === 204 || status === 304
    const isUntilClose = !isBodiless && !isChunked && length === NO_LENGTH
    const hasBody = !isBodiless && (isChunked || isUntilClose || length > 0)
    this.keepsAlive = (options & CLOSE) === 0 && (!this.#isHttp10 || (options & KEEP_ALIVE) !== 0) && !isUntilClose
    // Some servers send a body to HEAD, or what 204 and 304 announce: it would be taken for the next answer.
    if (isBodiless && (this.#isHead || isChunked || length > 0)) this.keepsAlive = false
    this.keepAliveSeconds = keepAliveSecondsOf(this.#keepAlive)
    this.forget()
    this.beginBody(hasBody ? (isChunked ? CHUNK_LINE : isUntilClose ? ENDLESS_BODY : SIZED_BODY) : undefined)
    this.#answers.onHead(list, !hasBody)
  }

  protected override forget(): void {
    super.forget()
    this.#keepAlive = ''
  }

  protected override onMalformed(why: string): void {
    this.stop()
    this.#answers.onMalformed(why)
  }

  protected override onTooLarge(): void {
    this.stop()
    this.#answers.onRefused()
  }
}

/** At `from`: SP, three digits, and a reason behind another SP, if there is one; -1 = something else. */
function statusOf(bytes: Buffer, from: number, to: number): number {
  if (bytes[from] !== SPACE) return -1
  let status = 0
  for (let i = from + 1; i <= from + STATUS_DIGITS; i++) {
    const digit = (bytes[i] as number) - ZERO
    if (digit < 0 || digit > 9) return -1
    status = status * 10 + digit
  }
  const reason = from + 1 + STATUS_DIGITS
  if (reason < to && bytes[reason] !== SPACE) return -1
  for (let i = reason; i < to; i++) if (VALUE_OCTETS[bytes[i] as number] === 0) return -1
  return status
}

const TIMEOUT = 'timeout='

/** The timeout that Keep-Alive announces; -1 = none. Its first digits count, and at most as many as are needed. */
function keepAliveSecondsOf(value: string): number {
  const at = value === '' ? -1 : value.toLowerCase().indexOf(TIMEOUT)
  if (at < 0) return DEFAULT_KEEP_ALIVE
  const seconds = Number.parseInt(value.slice(at + TIMEOUT.length, at + TIMEOUT.length + 9), 10)
  return seconds >= 0 ? seconds : DEFAULT_KEEP_ALIVE
}
