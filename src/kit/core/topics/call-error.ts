// Why a call to another thread has no answer.

/** It was late; the caller aborted the call; one of the threads has ended; or the other thread failed, as the message says. */
export type CallFailure = 'late' | 'aborted' | 'ended' | 'failed'

export class CallError extends Error {
  override readonly name = 'CallError'
  readonly failure: CallFailure

  constructor(failure: CallFailure, message: string) {
    super(message)
    this.failure = failure
  }
}
