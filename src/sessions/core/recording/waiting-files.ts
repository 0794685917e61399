// Which recordings wait to be uploaded, by what is found in their directory again and again: complete ones, and those that their gateway has left behind.

import { readRecordingName } from './file-name.ts'

interface FoundFile {
  readonly name: string
  readonly bytes: number
  /** Wall clock, milliseconds. */
  readonly changedMs: number
}

interface FoundPart extends FoundFile {
  /** In a row in which it was the same. */
  readonly looks: number
}

interface Failures {
  times: number
  /** The last one in which the file was there. */
  look: number
}

/** How many of those that wait are known at a time. */
const MAX_KNOWN_FILES = 512
/** The same of those that may be being written. */
const MAX_KNOWN_PARTS = 8192
/** A file that is being written changes at least once a minute. Counted in looks, since a process that was stopped has not looked. */
const LOOKS_UNTIL_ABANDONED = 360

export class WaitingFiles {
  #found: FoundFile[] = []
  #files: readonly FoundFile[] = []
  #foundParts = new Map<string, FoundPart>()
  #parts: ReadonlyMap<string, FoundPart> = new Map()
  readonly #failures = new Map<string, Failures>()
  #look = 0
  #foundCount = 0
  #foundOldestMs = Number.POSITIVE_INFINITY
  /** As of the last look. */
  count = 0
  /** When the one that waits longest was complete; Infinity = none waits. */
  oldestMs: number = Number.POSITIVE_INFINITY

  /** Begins a look, whatever became of the one before. */
  looking(): void {
    this.#found = []
    this.#foundParts = new Map()
    this.#foundCount = 0
    this.#foundOldestMs = Number.POSITIVE_INFINITY
  }

  see(file: FoundFile): void {
    const recording = readRecordingName(file.name)
    if (recording === undefined || (recording.isPart && !this.#isAbandoned(file))) return
    this.#foundCount++
    this.#foundOldestMs = Math.min(this.#foundOldestMs, file.changedMs)
    const failures = this.#failures.get(file.name)
    if (failures !== undefined) failures.look = this.#look
    this.#found.push(file)
    if (this.#found.length >= 2 * MAX_KNOWN_FILES) this.#found = this.#first(this.#found)
  }

  /** All were seen. */
  looked(): void {
    this.#files = this.#first(this.#found)
    this.#parts = this.#foundParts
    for (const [name, { look }] of this.#failures) if (look < this.#look) this.#failures.delete(name)
    this.#look++
    this.count = this.#foundCount
    this.oldestMs = this.#foundOldestMs
  }

  /** Names, in the order in which they are to be uploaded. */
  next(): readonly string[] {
    return this.#files.map(({ name }) => name)
  }

  /** It comes after all others from now on. */
  failed(name: string): void {
    this.#failures.set(name, { times: this.#timesOf(name) + 1, look: this.#look })
  }

  #isAbandoned(file: FoundFile): boolean {
    const before = this.#parts.get(file.name)
    const isSame = before !== undefined && before.bytes === file.bytes && before.changedMs === file.changedMs
    const looks = isSame ? before.looks + 1 : 0
    if (this.#foundParts.size < MAX_KNOWN_PARTS) this.#foundParts.set(file.name, { ...file, looks })
    return looks >= LOOKS_UNTIL_ABANDONED
  }

  #first(files: FoundFile[]): FoundFile[] {
    const inOrder = (a: FoundFile, b: FoundFile): number =>
      this.#timesOf(a.name) - this.#timesOf(b.name) || (a.name < b.name ? -1 : 1)
    return files.sort(inOrder).slice(0, MAX_KNOWN_FILES)
  }

  #timesOf(name: string): number {
    return this.#failures.get(name)?.times ?? 0
  }
}
