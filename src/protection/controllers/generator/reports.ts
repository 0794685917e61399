// Logs workloads that are not protected as intended: each problem once, until it changes.

import type { Logger } from '../../../kit/api/ports.ts'
import { errorMessage } from '../../../kit/api/validation/error-message.ts'
import { StatusError } from '../../../kube/api/status.ts'
import type { TurnOutcome } from '../../../kube/controllers/kernel/work-queue.ts'
import type { TurnResult } from './turn.ts'

export class GeneratorReports {
  readonly #log: Logger
  readonly #said = new Map<string, string>()
  /** By workload: why its PodProtector can't be written, if a right is missing. */
  readonly #forbidden = new Map<string, string>()

  constructor(log: Logger) {
    this.#log = log
  }

  /** Which right is missing; '' = none. */
  get forbidden(): string {
    for (const message of this.#forbidden.values()) return message
    return ''
  }

  /** @returns the problem, for metrics; '' = none */
  report(key: string, { decision, facts }: TurnResult): string {
    this.#forbidden.delete(key)
    if (decision.fault === '') this.#said.delete(key)
    else if (facts?.requirement.kind === 'unclear') this.#say(key, facts.requirement.message)
    else
      this.#say(key, 'it is being deleted without the finalizer of the generator: its PodProtector will be left behind')
    return decision.fault
  }

  failed(key: string, error: unknown): TurnOutcome {
    // Another client wrote first, or the object is gone.
    if (error instanceof StatusError && error.code === 409) return 'conflict'
    if (error instanceof StatusError && error.code === 403) this.#forbidden.set(key, errorMessage(error))
    else this.#forbidden.delete(key)
    this.#say(key, errorMessage(error))
    return 'failed'
  }

  forget(key: string): void {
    this.#forbidden.delete(key)
    this.#said.delete(key)
  }

  #say(key: string, message: string): void {
    if (this.#said.get(key) === message) return
    this.#said.set(key, message)
    this.#log.warn('a workload is not protected as it should be', { workload: key, reason: message })
  }
}
