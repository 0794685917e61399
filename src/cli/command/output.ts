// Common to all commands: where output goes, and how errors that an operator can fix are reported.

import { UserError } from '../../kit/api/validation/field-errors.ts'

export interface CommandOutput {
  readonly out: (text: string) => void
  readonly err: (text: string) => void
}

/** Environment that the flags of a command are bound to. */
export interface CommandContext extends CommandOutput {
  /** Milliseconds since the epoch. */
  readonly now: () => number
  /** Receives the exit code. */
  readonly done: (result: Promise<number> | number) => Promise<void>
}

/** The exit code of `action`; 1, and one line, if it throws a UserError. Anything else is a bug of ours and keeps its stack. */
export function reportUserErrors(err: CommandOutput['err'], action: () => number): number
export function reportUserErrors(err: CommandOutput['err'], action: () => Promise<number>): Promise<number>
export function reportUserErrors(
  err: CommandOutput['err'],
  action: () => number | Promise<number>,
): number | Promise<number> {
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

/** Terminal of commands that run until interrupted. */
export interface Terminal {
  /** Width of standard output; undefined = not a terminal. Read for each line: windows are resized. */
  columns(): number | undefined
  /** Asks, and resolves with the line that is typed; undefined = not a terminal. */
  readonly ask?: (question: string) => Promise<string>
  /** Aborts on the first Ctrl-C (SIGINT) or SIGTERM from now on; a second one ends the process as usual. */
  interrupted(): AbortSignal
}
