// What every command has: where its output goes, and what it says of what an operator can fix.

import { UserError } from '../../kit/api/validation/field-errors.ts'

export interface Output {
  readonly out: (text: string) => void
  readonly err: (text: string) => void
}

/** What the flags of a command are bound to. */
export interface CommandContext extends Output {
  /** Milliseconds since the epoch. */
  readonly now: () => number
  /** Takes the exit code. */
  readonly done: (result: Promise<number> | number) => Promise<void>
}

/** The exit code of `action`; 1, and one line, when it throws a UserError. Anything else is a bug of ours and keeps its stack. */
export function reportUserErrors(err: Output['err'], action: () => number): number
export function reportUserErrors(err: Output['err'], action: () => Promise<number>): Promise<number>
export function reportUserErrors(err: Output['err'], action: () => number | Promise<number>): number | Promise<number> {
  const report = (error: unknown): number => {
    if (!(error instanceof UserError)) throw error
    err(`error: ${error.message}; ${error.fix}\n`)
    return 1
  }
  try {
    const result = action()
    return typeof result === 'number' ? result : result.catch(report)
  } catch (error) {
    return report(error)
  }
}

/** No terminal, and so no interrupt. */
export const NO_TERMINAL: Terminal = { columns: () => undefined, interrupted: () => new AbortController().signal }

/** What commands that go on until they are interrupted know of their terminal. */
export interface Terminal {
  /** Columns of standard output; undefined = it is not a terminal. Read for each line: windows change. */
  columns(): number | undefined
  /** Aborts at the first Ctrl-C (SIGINT) or SIGTERM from now on; a second one ends the process as usual. */
  interrupted(): AbortSignal
}
