// How many bytes are in the directory of recordings, into which all threads write, and which others may write and empty.

import { opendir, stat } from 'node:fs/promises'
import { join } from 'node:path'

export class DirectorySize {
  readonly #dir: string
  readonly #used: BigInt64Array
  #running: Promise<number> | undefined

  /** @param used as RecordingSettings.used */
  constructor(dir: string, used: BigInt64Array) {
    this.#dir = dir
    this.#used = used
  }

  /** Resolves with the bytes of all files. One measurement runs at a time: there may be many files. */
  measure(): Promise<number> {
    this.#running ??= this.#measure().finally(() => {
      this.#running = undefined
    })
    return this.#running
  }

  async #measure(): Promise<number> {
    const before = Atomics.load(this.#used, 0)
    let bytes = 0
    for await (const { name } of await opendir(this.#dir)) {
      // It may have been removed in the meantime.
      bytes += (await stat(join(this.#dir, name)).catch(() => undefined))?.size ?? 0
    }
    // What the threads have added in the meantime stays counted, even if it was measured, too.
    Atomics.add(this.#used, 0, BigInt(bytes) - before)
    return bytes
  }
}
