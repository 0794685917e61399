// Calls between two threads: a name, an argument, and one answer or error. Each end has a `Calls`, which makes calls and answers those of the other
// end. It is independent of threads: `post` sends a message, `receive` takes one.

import { errorMessage } from '../../kit/api/validation/error-message.ts'
import { CallError, type CallFailure } from '../../kit/core/topics/call-error.ts'

/** Keyed by name: argument and answer of a call. Both are cloned in transit. */
type CallTypes<T> = Readonly<Record<keyof T, { readonly argument: unknown; readonly answer: unknown }>>
type NameOf<T> = keyof T & string
export type ArgumentOf<T extends CallTypes<T>, K extends NameOf<T>> = T[K]['argument']
export type AnswerOf<T extends CallTypes<T>, K extends NameOf<T>> = T[K]['answer']

/** Handlers of calls. An exception reaches the caller as a CallError. */
export type CallHandlers<T extends CallTypes<T>> = {
  readonly [K in NameOf<T>]: (argument: ArgumentOf<T, K>) => AnswerOf<T, K> | Promise<AnswerOf<T, K>>
}

/** An answer, with the name of its call. */
type NamedAnswer<T extends CallTypes<T>> = {
  [K in NameOf<T>]: { readonly name: K; readonly answer: AnswerOf<T, K> }
}[NameOf<T>]

/** Calls from here to there. */
export type CallMessage<T extends CallTypes<T>> = {
  [K in NameOf<T>]: {
    readonly type: 'call'
    readonly id: number
    readonly name: K
    readonly argument: ArgumentOf<T, K>
  }
}[NameOf<T>]

/** Answers to such calls. */
export type AnswerMessage<T extends CallTypes<T>> =
  | ({ readonly type: 'answer'; readonly id: number } & NamedAnswer<T>)
  /** The call failed. */
  | { readonly type: 'failure'; readonly id: number; readonly message: string }

export interface CallOptions {
  /** Milliseconds until the call fails as `late`. */
  readonly timeoutMs: number
  /** Aborting it fails the call. */
  readonly signal?: AbortSignal | undefined
}

interface CallsOptions<Ours extends CallTypes<Ours>, Theirs extends CallTypes<Theirs>> {
  readonly post: (message: CallMessage<Ours> | AnswerMessage<Theirs>) => void
  readonly handlers: CallHandlers<Theirs>
  /**
   * An answer without a caller: from the other end to a call that had already failed, or from a handler here for a thread that has ended. Default:
   * dropped.
   */
  readonly onUnclaimed?: (answer: NamedAnswer<Ours> | NamedAnswer<Theirs>) => void
}

interface Pending {
  readonly resolve: (answer: unknown) => void
  readonly fail: (failure: CallFailure, message: string) => void
}

/** @typeParam Ours calls made here @typeParam Theirs calls answered here */
export class Calls<Ours extends CallTypes<Ours>, Theirs extends CallTypes<Theirs>> {
  readonly #options: CallsOptions<Ours, Theirs>
  readonly #pending = new Map<number, Pending>()
  #nextId = 1
  #endedBecause: string | undefined

  constructor(options: CallsOptions<Ours, Theirs>) {
    this.#options = options
  }

  /** The answer. @throws {CallError} if there is none */
  call<K extends NameOf<Ours>>(
    name: K,
    argument: ArgumentOf<Ours, K>,
    { timeoutMs, signal }: CallOptions,
  ): Promise<AnswerOf<Ours, K>> {
    if (this.#endedBecause !== undefined) return Promise.reject(new CallError('ended', this.#endedBecause))
    if (signal?.aborted) return Promise.reject(new CallError('aborted', 'aborted'))
    const { promise, resolve, reject } = Promise.withResolvers<AnswerOf<Ours, K>>()
    const id = this.#nextId++
    const settle = (): void => {
      clearTimeout(deadline)
      signal?.removeEventListener('abort', abort)
      this.#pending.delete(id)
    }
    const fail = (failure: CallFailure, message: string): void => {
      settle()
      reject(new CallError(failure, message))
    }
    const abort = (): void => fail('aborted', 'aborted')
    const deadline = setTimeout(() => fail('late', `no answer within ${timeoutMs} ms`), timeoutMs)
    signal?.addEventListener('abort', abort)
    this.#pending.set(id, {
      resolve: (answer) => {
        settle()
        resolve(answer)
      },
      fail,
    })
    try {
      // The compiler does not see that the argument matches the name.
      this.#options.post({ type: 'call', id, name, argument } as CallMessage<Ours>)
    } catch (error) {
      fail('failed', errorMessage(error))
    }
    return promise
  }

  receive(message: CallMessage<Theirs> | AnswerMessage<Ours>): void {
    switch (message.type) {
      case 'call':
        void this.#answer(message)
        return
      case 'failure':
        this.#pending.get(message.id)?.fail('failed', message.message)
        return
      case 'answer': {
        const pending = this.#pending.get(message.id)
        if (pending === undefined) this.#options.onUnclaimed?.(message)
        else pending.resolve(message.answer)
      }
    }
  }

  /** Sends nothing any more: pending and future calls fail. */
  end(because: string): void {
    this.#endedBecause ??= because
    for (const pending of [...this.#pending.values()]) pending.fail('ended', because)
  }

  async #answer<K extends NameOf<Theirs>>({ id, name, argument }: CallOf<Theirs, K>): Promise<void> {
    let message: AnswerMessage<Theirs>
    try {
      const answer = await this.#options.handlers[name](argument)
      message = { type: 'answer', id, name, answer } as AnswerMessage<Theirs>
    } catch (error) {
      message = { type: 'failure', id, message: errorMessage(error) }
    }
    if (this.#endedBecause === undefined) this.#send(message)
    else if (message.type === 'answer') this.#options.onUnclaimed?.(message)
  }

  #send(message: AnswerMessage<Theirs>): void {
    try {
      this.#options.post(message)
    } catch (error) {
      // An answer that cannot be cloned.
      this.#options.post({ type: 'failure', id: message.id, message: errorMessage(error) })
    }
  }
}

interface CallOf<T extends CallTypes<T>, K extends NameOf<T>> {
  readonly id: number
  readonly name: K
  readonly argument: ArgumentOf<T, K>
}
