// The text of what was thrown, which may be anything, for a log line, a status or another error.

import { UserError } from './field-errors.ts'

export function errorMessage(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

/** With what the operator can do about it, where that is known. */
export function errorWithFix(error: unknown): string {
  return error instanceof UserError ? `${error.message}; ${error.fix}` : errorMessage(error)
}
