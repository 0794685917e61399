// Why a call to another thread has no answer.

/** Too late; aborted by the caller; one of the threads has ended; or the other thread failed, for the reason in the message. */
export type CallFailure = 'late' | 'aborted' | 'ended' | 'failed'

export class CallError extends Error {
  override readonly name = 'CallError'
  readonly failure: CallFailure

  constructor(failure: CallFailure, message: string) {
    super(message)
    this.failure = failure
  }
}
