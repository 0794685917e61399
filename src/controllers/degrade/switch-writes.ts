// Writes of controllers that change the degrade switch: one at a time for each cluster, and what keeps failing is logged once.

import { StatusError } from '../../api/kube/status.ts'
import type { Logger } from '../../api/ports/ports.ts'
import { errorMessage } from '../../api/validation/error-message.ts'

export interface SwitchWriter {
  /** A write is under way. */
  writing: boolean
  /** Why the last write failed; '' = it did not. */
  fault: string
}

export class SwitchWrites {
  readonly #log: Logger
  readonly #failed: string
  readonly #running = new Set<Promise<void>>()

  /** @param failed what is logged of a write that failed */
  constructor(log: Logger, failed: string) {
    this.#log = log
    this.#failed = failed
  }

  /** What failed is tried again by whoever looks next, from what is known by then. */
  begin(cluster: string, writer: SwitchWriter, write: () => Promise<void>): void {
    writer.writing = true
    const running = write()
      .then(
        () => {
          writer.fault = ''
        },
        (error: unknown) => this.#fail(cluster, writer, error),
      )
      .finally(() => {
        writer.writing = false
        this.#running.delete(running)
      })
    this.#running.add(running)
  }

  #fail(cluster: string, writer: SwitchWriter, error: unknown): void {
    // Somebody has written since, or has deleted it: that is on its way here.
    if (error instanceof StatusError && (error.code === 409 || error.code === 404)) return
    const why = errorMessage(error)
    if (why !== writer.fault) this.#log.warn(this.#failed, { cluster, why })
    writer.fault = why
  }

  /** All that have begun are over. */
  async ended(): Promise<void> {
    await Promise.all(this.#running)
  }
}
