// Files named by settings, reread whenever they change. Unusable content is refused with one log line, and the previous content stays in force.

import type { Logger } from '../../kit/api/ports.ts'
import { errorWithFix } from '../../kit/api/validation/error-message.ts'
import { type FollowedFiles, followFiles } from '../../kit/io/world/follow-files.ts'

interface ReloadedFilesOptions {
  /** Label `file` of the metric `portcullis_file_last_reload_successful`. */
  readonly label: string
  /** In the log, before `cannot be used`. */
  readonly what: string
  readonly files: readonly string[]
  /** Puts their content in force. @throws if it is unusable, without having changed anything */
  readonly read: () => void
  readonly log: Logger
  /** Milliseconds between two checks. Default 1 s. */
  readonly lookMs?: number
}

export class ReloadedFiles {
  readonly label: string
  readonly #options: ReloadedFilesOptions
  readonly #followed: FollowedFiles
  #error = ''

  constructor(options: ReloadedFilesOptions) {
    this.label = options.label
    this.#options = options
    this.#followed = followFiles(options.files, () => this.#read(), options.lookMs)
  }

  /** Whether their current content is in force. */
  get inForce(): boolean {
    return this.#error === ''
  }

  get reloads(): ReadonlyMap<string, boolean> {
    return new Map([[this.label, this.inForce]])
  }

  stop(): void {
    this.#followed.stop()
  }

  #read(): void {
    const { what, read, log } = this.#options
    try {
      read()
    } catch (error) {
      const why = errorWithFix(error)
      if (why !== this.#error) log.error(`${what} cannot be used; the previous contents stay in force`, { error: why })
      this.#error = why
      return
    }
    if (this.#error !== '') log.info(`${what} is in force again`)
    this.#error = ''
  }
}
