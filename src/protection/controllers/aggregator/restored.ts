// Detects that a cell has gone back in time, as after a restored backup. A status counted from a newer snapshot is then outdated, not
// ahead of us.

import type { Clock, Logger } from '../../../kit/api/ports.ts'
import { compareVersions } from '../../core/history/resource-version.ts'

export interface RestoredCellDeps {
  readonly cell: string
  /** The newest resourceVersion of the cell, by a consistent read. */
  readVersion(): Promise<string>
  readonly clock: Clock
  readonly log: Logger
  /** Called once, on detection. */
  onRestored(): void
}

/** Between two checks. */
const CHECK_INTERVAL_MS = 5_000

export class RestoredCell {
  readonly #deps: RestoredCellDeps
  #restored = false
  #checking = false
  #nextMs = Number.NEGATIVE_INFINITY

  constructor(deps: RestoredCellDeps) {
    this.#deps = deps
  }

  /** Once true, it stays true. */
  get restored(): boolean {
    return this.#restored
  }

  /** Another replica has counted the cell at `version`, newer than known here: usually we just lag. Never rejects. */
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
      // The next count of a protector checks again.
    } finally {
      this.#checking = false
    }
  }
}
