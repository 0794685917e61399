// Why a call of the gateway's own to another machine has no answer that can be used.

/** There was no response, or none that can be used. */
export class KubeCallError extends Error {
  /** Whether no server can have processed it. */
  readonly unprocessed: boolean

  constructor(message: string, unprocessed = false) {
    super(message)
    this.unprocessed = unprocessed
  }
}

/** Nothing came in time: the server may be slow, or gone. */
export class NoAnswerError extends KubeCallError {
  constructor(timeoutMs: number) {
    super(`no answer within ${timeoutMs} ms`)
  }
}

/** The gateway itself held it back: too many calls are running. */
export class CallLimitError extends KubeCallError {
  readonly retryAfterSeconds: number

  constructor(message: string, retryAfterSeconds: number, unprocessed = true) {
    super(message, unprocessed)
    this.retryAfterSeconds = retryAfterSeconds
  }
}

/** The server has answered, but the answers that are being read take all of the memory that there is for them. */
export class NoRoomError extends CallLimitError {
  /** Others have more than their share: a smaller answer may find room. */
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
    super(`the header fields are larger than the ${maxBytes} bytes that the server takes`, true)
    this.maxBytes = maxBytes
  }
}

/** The server has processed the request, but its response is too large; so would be that of any other endpoint. */
export class AnswerTooLargeError extends KubeCallError {
  /** What it has more of than is read. */
  readonly excess: string

  constructor(excess: string) {
    super(`the answer has ${excess}, which is the limit`)
    this.excess = excess
  }
}
