// The last lines of the process log, for the support bundle: in memory, bounded by characters.

export interface LineSink {
  write(line: string): void
}

const MAX_CHARACTERS = 512 * 1024

export class RecentLines implements LineSink {
  readonly #next: LineSink
  readonly #max: number
  #lines: string[] = []
  /** Index into `#lines`: those before it are dropped, and removed now and then. */
  #first = 0
  #characters = 0

  /** @param next also receives each line */
  constructor(next: LineSink, max: number = MAX_CHARACTERS) {
    this.#next = next
    this.#max = max
  }

  write(line: string): void {
    this.#next.write(line)
    this.#lines.push(line)
    this.#characters += line.length
    while (this.#characters > this.#max) this.#characters -= this.#lines[this.#first++]?.length ?? this.#characters
    if (this.#first * 2 < this.#lines.length) return
    this.#lines = this.#lines.slice(this.#first)
    this.#first = 0
  }

  /** Each line with its end. */
  text(): string {
    return this.#lines
      .slice(this.#first)
      .map((line) => `${line}\n`)
      .join('')
  }
}
