// One HTTP/1.1 call to another machine whose response is bounded however it is read. Does not follow redirects or decode compressed responses.

import type { Readable } from 'node:stream'
import type { ConnectionOptions } from 'node:tls'
import { Agent, type buildConnector, type Dispatcher, request } from 'undici'
import type { Charge } from '../../../kit/api/stream.ts'
import { errorMessage } from '../../../kit/api/validation/error-message.ts'
import { http1Connector } from '../../../kit/io/dial/http1-connector.ts'
import type { AnswerLimits } from '../../core/answers/answer-limits.ts'
import { AnswerReader } from '../../core/answers/answer-reader.ts'
import { AnswerTooLargeError } from '../../core/answers/call-errors.ts'
import { countInterimHeads } from './interim-heads.ts'
import { AnswerBytes, COUNT_SEED } from './thread-answers.ts'

interface BoundedRequest {
  /** Default GET. */
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
  /** A stream is sent as it is read; give its `content-length`. */
  readonly body?: string | Uint8Array | Readable | undefined
  /** Which server certificate is accepted, and which client certificate is presented. Default: Node's CAs, none. */
  readonly tls?: ConnectionOptions
  /** Connections kept between calls; `tls` is then theirs. Default: one for this call alone, which ends with the response. */
  readonly connections?: Dispatcher
  /** Ends the call at any point, including the response: calls have no other deadline. */
  readonly signal: AbortSignal
}

/** @throws (rejects) the system's error, OpenSSL's, or the signal's reason: `faultText` describes each */
export async function fetchBounded(url: URL | string, call: BoundedRequest): Promise<BoundedReply> {
  const { method = 'GET', headers = {}, body = null, signal } = call
  const own = call.connections === undefined ? connectionOf(call) : undefined
  const end = (): void => void own?.destroy()
  try {
    const dispatcher = call.connections ?? own
    const answer = await request(url, {
      method: method as Dispatcher.HttpMethod,
      headers,
      body,
      signal,
      reset: own !== undefined,
      onInfo: countInterimHeads(),
      ...(dispatcher !== undefined && { dispatcher }),
    })
    // A reader gets the error; there may be no reader when the signal aborts.
    answer.body.on('error', () => undefined).once('close', end)
    return new BoundedReply(answer)
  } catch (error) {
    end()
    throw error
  }
}

/** The signal also aborts connecting: undici itself would leave the socket to its own timeout. */
function connectionOf({ tls, signal }: BoundedRequest): Agent {
  return new Agent({
    allowH2: false,
    headersTimeout: 0,
    bodyTimeout: 0,
    connect: http1Connector({ ...tls, signal, timeout: 0, allowH2: false } as buildConnector.BuildOptions),
  })
}

/** The head of a response, whose body must be read or discarded. Every way to read it throws if the body is cut off. */
export class BoundedReply {
  readonly code: number
  readonly #headers: Dispatcher.ResponseData['headers']
  readonly #body: Dispatcher.ResponseData['body']

  constructor({ statusCode, headers, body }: Dispatcher.ResponseData) {
    this.code = statusCode
    this.#headers = headers
    this.#body = body
  }

  /** '' = absent. @param name in lower case */
  header(name: string): string {
    return [this.#headers[name] ?? ''].flat()[0] ?? ''
  }

  /**
   * The whole body, which may be parsed: its values have been counted.
   * @param charge the source that is charged for its memory while it arrives
   * @throws {AnswerTooLargeError} @throws {NoRoomError}
   */
  async countedText(limits: AnswerLimits, charge: Charge): Promise<string> {
    return (await readAnswer(this.#body, limits.bytes, charge)).counted(limits, COUNT_SEED)
  }

  /** For commands, which have their own process: no other call waits for memory. @throws (rejects) if it exceeds maxBytes */
  async whole(maxBytes: number): Promise<Buffer> {
    const all = await this.beginning(maxBytes + 1)
    if (all.length > maxBytes) throw new Error(`the answer has more than ${maxBytes} bytes`)
    return all
  }

  /** Like `whole`, but truncates a longer body. */
  async beginning(maxBytes: number): Promise<Buffer> {
    const all: Buffer[] = []
    let bytes = 0
    for await (const chunk of this.#body) {
      all.push(chunk)
      bytes += chunk.length
      if (bytes >= maxBytes) break
    }
    return Buffer.concat(all).subarray(0, maxBytes)
  }

  /** Its lines as they arrive, without empty ones. @throws if a line is longer */
  async *lines(maxLine: number): AsyncGenerator<string> {
    const decoder = new TextDecoder()
    let rest = ''
    for await (const chunk of this.#body) {
      const lines = `${rest}${decoder.decode(chunk, { stream: true })}`.split('\n')
      rest = lines.pop() ?? ''
      if (rest.length > maxLine) throw new Error('a line is too long')
      for (const line of lines) if (line !== '') yield line
    }
    if (rest !== '') yield rest
  }

  /** Reads the rest, up to `maxBytes`, so that a kept connection can be reused. */
  async dump(maxBytes: number): Promise<void> {
    await this.#body.dump({ limit: maxBytes })
  }

  /** Ends the response and its connection. */
  discard(): void {
    this.#body.destroy()
  }
}

/** A whole response body, within the limit and charged. @throws {AnswerTooLargeError} @throws {NoRoomError} @throws (rejects) if it is cut off */
export async function readAnswer(body: AsyncIterable<Buffer>, maxBytes: number, charge: Charge): Promise<AnswerReader> {
  const memory = new AnswerBytes(charge)
  const reader = new AnswerReader(maxBytes, memory)
  try {
    for await (const chunk of body) {
      const fault = reader.add(chunk)
      // Thrown in here, it also ends the response.
      if (fault === 'too-large') throw new AnswerTooLargeError(`more than ${maxBytes} bytes`)
      if (fault === 'no-room') throw memory.full()
    }
    return reader
  } catch (error) {
    reader.drop()
    throw error
  }
}

/** One line. */
export function faultText(error: unknown): string {
  // Several addresses failed: Node reports an AggregateError without a message.
  if (error instanceof AggregateError) return error.errors.map(faultText).join(', ')
  if (isLate(error)) return 'it takes too long'
  if (faultCode(error) === 'UND_ERR_SOCKET') return 'the connection was closed'
  // OpenSSL's messages end with a line break.
  return errorMessage(error).replaceAll(/\s+/g, ' ').trim()
}

/** '' = it has none. */
export function faultCode(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : ''
}

/** Whether a signal ended the call. */
function isLate(error: unknown): boolean {
  return error instanceof Error && (error.name === 'TimeoutError' || error.name === 'AbortError')
}
