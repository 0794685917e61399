// Creates and updates the CustomResourceDefinitions at startup; in the background if the API server is down and the gateway starts with the last good
// state.

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
   * @param withinMs afterwards, or after a failure, it continues in the background; absent = it must succeed now
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

  /** A pending call ends with the client. */
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
        // Retrying does not help if only an operator can fix it.
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
