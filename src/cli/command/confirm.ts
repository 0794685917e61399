// Asks before many clusters are changed.

import { UserError } from '../../kit/api/validation/field-errors.ts'
import type { CommandOutput } from './output.ts'

export interface ConfirmOptions extends CommandOutput {
  /** Don't ask. Default false. */
  readonly yes?: boolean
  /** Asks on the terminal, and resolves with the line that is typed. undefined = there is no terminal. */
  readonly ask?: ((question: string) => Promise<string>) | undefined
}

/** @throws {UserError} if there is no one to ask */
export async function confirmed({ yes = false, ask, err }: ConfirmOptions, question: string): Promise<boolean> {
  if (yes) return true
  if (ask === undefined) {
    throw new UserError(
      'nothing was changed: there is no terminal to confirm the plan on',
      'give --yes to go on without',
    )
  }
  const answer = (await ask(`${question} [y/N] `)).trim().toLowerCase()
  if (answer === 'y' || answer === 'yes') return true
  err('nothing was changed\n')
  return false
}
