// Files that settings name, read again whenever they change. What cannot be used is refused with one line, and what was read before
// stays in force.

import type { Logger } from '../../kit/api/ports.ts'
import { errorWithFix } from '../../kit/api/validation/error-message.ts'
import { type FollowedFiles, followFiles } from '../../kit/io/world/follow-files.ts'

export interface ReloadedFilesOptions {
  /** Of the metric `portcullis_file_last_reload_successful`: the label `file`. */
  readonly label: string
  /** In the log, before `cannot be used`. */
  readonly what: string
  readonly files: readonly string[]
  /** Puts their content in force. @throws when it cannot be used, without having changed anything */
  readonly read: () => void
  readonly log: Logger
  /** Milliseconds between two looks. Default 1 s. */
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

  /** Whether what they hold now is in force. */
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
      if (why !== this.#error) log.error(`${what} cannot be used; what was read before stays in force`, { error: why })
      this.#error = why
      return
    }
    if (this.#error !== '') log.info(`${what} is in force again`)
    this.#error = ''
  }
}
