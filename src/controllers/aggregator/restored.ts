// Whether a cell has gone back in time, as after a restored backup: then statuses of newer snapshots are of another world, and
// not of somebody who has seen more.

import type { Clock, Logger } from '../../api/ports/ports.ts'
import { compareVersions } from '../../core/protection/history/resource-version.ts'

export interface RestoredCellDeps {
  readonly cell: string
  /** The newest resourceVersion of the cell, by a consistent read. */
  readVersion(): Promise<string>
  readonly clock: Clock
  readonly log: Logger
  /** It was found. */
  onRestored(): void
}

/** Between two questions. */
const CHECK_INTERVAL_MS = 5_000

export class RestoredCell {
  readonly #deps: RestoredCellDeps
  #restored = false
  #checking = false
  #nextMs = Number.NEGATIVE_INFINITY

  constructor(deps: RestoredCellDeps) {
    this.#deps = deps
  }

  /** Never false again. */
  get restored(): boolean {
    return this.#restored
  }

  /** Somebody has counted the cell as of `version`, which is newer than what is known here: mostly we are late. Never rejects. */
  async check(version: string): Promise<void> {
    const { clock, cell, log } = this.#deps
    if (this.#checking || this.#restored || clock.monotonic() < this.#nextMs) return
    this.#checking = true
    this.#nextMs = clock.monotonic() + CHECK_INTERVAL_MS
    try {
      const newest = await this.#deps.readVersion()
      if ((compareVersions(newest, version) ?? 0) >= 0) return
      log.warn('a cell has gone back in time and is counted again', { cell, resourceVersion: newest, counted: version })
      this.#restored = true
      this.#deps.onRestored()
    } catch {
      // It is asked again when a protector is counted again.
    } finally {
      this.#checking = false
    }
  }
}
