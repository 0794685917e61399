// Looks through the directory of recordings, into which all threads write, and which others may write and empty: how much each user has there, and
// which recordings wait.

import { lstat, opendir } from 'node:fs/promises'
import { join } from 'node:path'
import { type DirectoryRoom, emptySlots } from '../core/recording/directory-room.ts'
import { slotInName } from '../core/recording/file-name.ts'

export interface SpooledFile {
  readonly name: string
  readonly bytes: number
  /** Wall clock, milliseconds: its last change. */
  readonly changedMs: number
}

interface SpoolOptions {
  readonly dir: string
  readonly room: DirectoryRoom
  /** Called when a look begins, which may fail. */
  looking(): void
  /** Called for each file. */
  see(file: SpooledFile): void
}

export class Spool {
  readonly #options: SpoolOptions
  #running: Promise<number> | undefined

  constructor(options: SpoolOptions) {
    this.#options = options
  }

  /** Resolves with the bytes of all files. One look runs at a time: there may be many files. */
  look(): Promise<number> {
    this.#running ??= this.#look().finally(() => {
      this.#running = undefined
    })
    return this.#running
  }

  async #look(): Promise<number> {
    const { dir, room, looking, see } = this.#options
    looking()
    const before = room.beforeMeasuring()
    const found = emptySlots()
    let all = 0
    for await (const { name } of await opendir(dir)) {
      // It may have been removed in the meantime.
      const file = await lstat(join(dir, name)).catch(() => undefined)
      if (file?.isFile() !== true) continue
      const slot = slotInName(name)
      found[slot] = (found[slot] ?? 0) + file.size
      all += file.size
      see({ name, bytes: file.size, changedMs: file.mtimeMs })
    }
    room.measured(before, found)
    return all
  }
}
