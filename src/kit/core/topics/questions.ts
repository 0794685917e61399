// Calls of one subject from a gateway thread to the main thread. Both ends use the same object for a question, which has the types of argument and
// answer: the call in between (program/threads/calls.ts) knows neither.

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
  answer<A, R>(question: Question<A, R>, handler: (argument: A) => Promise<R>, onUnclaimed?: (answer: R) => void): void
}

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

/** Answers of the main thread. */
export class MainAnswers implements AnswersThreads {
  readonly #answerers = new Map<string, Answerer>()

  answer<A, R>(
    question: Question<A, R>,
    handler: (argument: A) => Promise<R>,
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
