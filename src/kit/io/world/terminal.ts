// The terminal of a command that refreshes its output in place: its size and keys, and restoring it afterwards.

import process from 'node:process'

export interface Screen {
  readonly columns: number
  readonly rows: number
  /** Replaces the output by these lines; none may be wider than the screen. */
  show(lines: readonly string[]): void
  /** Resolves after `ms`, or earlier if the size has changed; false if the user wants to quit. */
  wait(ms: number): Promise<boolean>
  /** Restores the previous contents. */
  close(): void
}

/** Streams of a screen: standard input and output, except in tests. */
export interface ScreenStreams {
  readonly input: Pick<NodeJS.ReadStream, 'setRawMode' | 'on' | 'off' | 'pause' | 'resume' | 'isTTY'>
  readonly output: Pick<NodeJS.WriteStream, 'write' | 'on' | 'off' | 'columns' | 'rows' | 'isTTY'>
}

const ENTER = '\x1b[?1049h\x1b[?25l'
const LEAVE = '\x1b[?25h\x1b[?1049l'
const HOME = '\x1b[H'
const CLEAR_LINE = '\x1b[K'
const CLEAR_BELOW = '\x1b[J'
const CTRL_C = 0x03
const DEFAULT_COLUMNS = 80
const DEFAULT_ROWS = 24

/** undefined if output is not a terminal, or there is no keyboard: then the command prints its output once. */
export function openScreen(
  terminal: ScreenStreams = { input: process.stdin, output: process.stdout },
): Screen | undefined {
  const { input, output } = terminal
  return input.isTTY && output.isTTY ? new TerminalScreen(terminal) : undefined
}

class TerminalScreen implements Screen {
  readonly #terminal: ScreenStreams
  #ended = false
  #wake: () => void = () => undefined
  readonly #onKey = (bytes: Buffer): void => {
    if (bytes.includes('q') || bytes.includes(CTRL_C)) this.#end()
  }
  readonly #onResize = (): void => this.#wake()
  readonly #end = (): void => {
    this.#ended = true
    this.#wake()
  }

  constructor(terminal: ScreenStreams) {
    this.#terminal = terminal
    const { input, output } = terminal
    input.setRawMode(true)
    input.on('data', this.#onKey)
    input.resume()
    output.on('resize', this.#onResize)
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, this.#end)
    output.write(ENTER)
  }

  get columns(): number {
    return this.#terminal.output.columns || DEFAULT_COLUMNS
  }

  get rows(): number {
    return this.#terminal.output.rows || DEFAULT_ROWS
  }

  show(lines: readonly string[]): void {
    const shown = lines.slice(0, this.rows).map((line) => `${line}${CLEAR_LINE}`)
    this.#terminal.output.write(`${HOME}${shown.join('\r\n')}${CLEAR_BELOW}`)
  }

  async wait(ms: number): Promise<boolean> {
    if (this.#ended) return false
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, ms)
      this.#wake = () => {
        clearTimeout(timer)
        resolve()
      }
    })
    return !this.#ended
  }

  close(): void {
    const { input, output } = this.#terminal
    output.write(LEAVE)
    output.off('resize', this.#onResize)
    input.off('data', this.#onKey)
    input.setRawMode(false)
    input.pause()
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.off(signal, this.#end)
  }
}
