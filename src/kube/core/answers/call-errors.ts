// Why a call of the gateway to another machine has no usable response.

/** There was no response, or no usable one. */
export class KubeCallError extends Error {
  /** Whether it is certain that no server processed it. */
  readonly unprocessed: boolean

  constructor(message: string, unprocessed = false) {
    super(message)
    this.unprocessed = unprocessed
  }
}

/** Timeout: the server may be slow, or gone. */
export class NoAnswerError extends KubeCallError {
  constructor(timeoutMs: number) {
    super(`no answer within ${timeoutMs} ms`)
  }
}

/** Throttled by the gateway itself: too many calls are running. */
export class CallLimitError extends KubeCallError {
  readonly retryAfterSeconds: number

  constructor(message: string, retryAfterSeconds: number, unprocessed = true) {
    super(message, unprocessed)
    this.retryAfterSeconds = retryAfterSeconds
  }
}

/** The server responded, but the responses being read take all memory reserved for them. */
export class NoRoomError extends CallLimitError {
  /** Others are above their share: a smaller response may fit. */
  readonly belowShare: boolean

  constructor(message: string, retryAfterSeconds: number, belowShare: boolean) {
    super(message, retryAfterSeconds, false)
    this.belowShare = belowShare
  }
}

/** The request's head is larger than the server accepts: nothing was sent, and other endpoints would not accept it either. */
export class HeadTooLargeError extends KubeCallError {
  /** The server's limit. */
  readonly maxBytes: number

  constructor(maxBytes: number) {
    super(`the header fields are larger than the ${maxBytes} bytes that the server accepts`, true)
    this.maxBytes = maxBytes
  }
}

/** The server processed the request, but its response is too large; any other endpoint's would be, too. */
export class AnswerTooLargeError extends KubeCallError {
  /** The limit that was exceeded. */
  readonly excess: string

  constructor(excess: string) {
    super(`the answer has ${excess}, which is the limit`)
    this.excess = excess
  }
}
