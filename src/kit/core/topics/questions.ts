// Calls of one subject between a gateway thread and the main thread, in both directions. Both ends use the same object for a question, which has the
// types of argument and answer: the call in between (program/threads/calls.ts) knows neither.

/** Plain data that can be cloned, as is the answer. */
export interface AskedQuestion<A = unknown> {
  readonly question: string
  readonly argument: A
}

export interface AnsweredQuestion<R = unknown> {
  readonly question: string
  readonly answer: R
}

/** @typeParam A its argument @typeParam R its answer */
export class Question<A, R> {
  readonly name: string

  /** @param name unique */
  constructor(name: string) {
    this.name = name
  }

  asked(argument: A): AskedQuestion<A> {
    return { question: this.name, argument }
  }

  answered(answer: R): AnsweredQuestion<R> {
    return { question: this.name, answer }
  }

  isAsked(asked: AskedQuestion): asked is AskedQuestion<A> {
    return asked.question === this.name
  }

  isAnswered(answered: AnsweredQuestion): answered is AnsweredQuestion<R> {
    return answered.question === this.name
  }
}

/** A gateway thread's end. */
export interface AsksMain {
  /** @throws {CallError} (rejects) if there is no answer within `timeoutMs` */
  ask<A, R>(question: Question<A, R>, argument: A, timeoutMs: number): Promise<R>
  /** Calls the listener with each answer that arrives after its caller has given up. One listener for each question; default: dropped. */
  onLate<A, R>(question: Question<A, R>, listener: (answer: R) => void): void
}

/** The main thread's end. */
export interface AnswersThreads {
  /**
   * One handler for each question; its exceptions become CallErrors at the caller.
   * @param onUnclaimed called with each answer for a thread that has ended by then. Default: it is dropped
   */
  answer<A, R>(
    question: Question<A, R>,
    handler: (argument: A) => Promise<R> | R,
    onUnclaimed?: (answer: R) => void,
  ): void
}

export interface AskOptions {
  /** A thread that has not answered by then is omitted. Default 1000. */
  readonly timeoutMs?: number
  /** Threads that have not answered when it aborts are omitted. */
  readonly signal?: AbortSignal
}

/** The main thread's end of questions to all gateway threads. */
export interface AsksThreads {
  /** One answer per thread; threads that are gone, fail or take too long are omitted. Never rejects. */
  ask<A, R>(question: Question<A, R>, argument: A, options?: AskOptions): Promise<readonly OfThread<R>[]>
}

/** A thread's answer. */
export interface OfThread<R> {
  /** Its number, from 0. */
  readonly thread: number
  readonly answer: R
}

/** A gateway thread's end of them. */
export type AnswersMain = Pick<AnswersThreads, 'answer'>

/** Questions of a gateway thread. */
export class ThreadQuestions implements AsksMain {
  readonly #call: (asked: AskedQuestion, timeoutMs: number) => Promise<AnsweredQuestion>
  readonly #late = new Map<string, (answered: AnsweredQuestion) => void>()

  /** @param call the call to the main thread */
  constructor(call: (asked: AskedQuestion, timeoutMs: number) => Promise<AnsweredQuestion>) {
    this.#call = call
  }

  async ask<A, R>(question: Question<A, R>, argument: A, timeoutMs: number): Promise<R> {
    const answered = await this.#call(question.asked(argument), timeoutMs)
    if (!question.isAnswered(answered)) throw new Error(`${question.name} got the answer of ${answered.question}`)
    return answered.answer
  }

  onLate<A, R>(question: Question<A, R>, listener: (answer: R) => void): void {
    this.#late.set(question.name, (answered) => {
      if (question.isAnswered(answered)) listener(answered.answer)
    })
  }

  /** An answer without a caller. */
  late(answered: AnsweredQuestion): void {
    this.#late.get(answered.question)?.(answered)
  }
}

interface Answerer {
  readonly answer: (asked: AskedQuestion) => Promise<AnsweredQuestion>
  readonly unclaimed: (answered: AnsweredQuestion) => void
}

/** Answers of a thread. */
export class Answers implements AnswersThreads {
  readonly #answerers = new Map<string, Answerer>()

  answer<A, R>(
    question: Question<A, R>,
    handler: (argument: A) => Promise<R> | R,
    onUnclaimed: (answer: R) => void = () => undefined,
  ): void {
    this.#answerers.set(question.name, {
      async answer(asked) {
        if (!question.isAsked(asked)) throw new Error(`${question.name} was asked ${asked.question}`)
        return question.answered(await handler(asked.argument))
      },
      unclaimed(answered) {
        if (question.isAnswered(answered)) onUnclaimed(answered.answer)
      },
    })
  }

  /** @throws (rejects) if the handler throws, or if there is none */
  async of(asked: AskedQuestion): Promise<AnsweredQuestion> {
    const answerer = this.#answerers.get(asked.question)
    if (answerer === undefined) throw new Error(`no handler answers ${asked.question}`)
    return await answerer.answer(asked)
  }

  /** An answer for a thread that has ended. */
  unclaimed(answered: AnsweredQuestion): void {
    this.#answerers.get(answered.question)?.unclaimed(answered)
  }
}
