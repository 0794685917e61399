// Creates and updates the CustomResourceDefinitions at the start; behind it, where the API server is away and the gateway begins
// with the last good state.

import { setTimeout as sleep } from 'node:timers/promises'
import { errorMessage } from '../../kit/api/validation/error-message.ts'
import { UserError } from '../../kit/api/validation/field-errors.ts'
import { type InstallCrdsOptions, installCrds } from '../../kube/io/install-crds.ts'

const RETRY_MS = 10_000

export class CrdInstallation {
  readonly #options: InstallCrdsOptions
  readonly #stopping = new AbortController()

  constructor(options: InstallCrdsOptions) {
    this.#options = options
  }

  /**
   * @param withinMs afterwards, or after a failure, it goes on by itself; absent = it has to succeed now
   * @throws {UserError} (rejects) only without `withinMs`
   */
  async done(withinMs?: number): Promise<void> {
    const first = installCrds(this.#options)
    if (withinMs === undefined) {
      await first
      return
    }
    void this.#untilInstalled(first)
    const { signal } = this.#stopping
    const late = sleep(withinMs, undefined, { signal }).catch(() => undefined)
    await Promise.race([first.catch(() => undefined), late])
  }

  /** A call that is under way ends with the client. */
  stop(): void {
    this.#stopping.abort()
  }

  /** Never rejects. */
  async #untilInstalled(first: Promise<void>): Promise<void> {
    const { signal } = this.#stopping
    const { log } = this.#options
    let said = ''
    let attempt: Promise<void> | undefined = first
    while (!signal.aborted) {
      try {
        await (attempt ?? installCrds(this.#options))
        return
      } catch (error) {
        // What only an operator can change does not change by asking again.
        if (error instanceof UserError) {
          log.warn('CustomResourceDefinitions are not up to date', { why: error.message, fix: error.fix })
          return
        }
        const why = errorMessage(error)
        if (why !== said && !signal.aborted) {
          log.warn('CustomResourceDefinitions cannot be brought up to date yet; tried again every 10 s', { why })
        }
        said = why
      }
      attempt = undefined
      await sleep(RETRY_MS, undefined, { signal }).catch(() => undefined)
    }
  }
}
