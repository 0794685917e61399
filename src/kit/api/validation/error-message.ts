// Message of a thrown value of any type, for a log line, a status or another error.

import { UserError } from './field-errors.ts'

export function errorMessage(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

/** Includes the fix, if known. */
export function errorWithFix(error: unknown): string {
  return error instanceof UserError ? `${error.message}; ${error.fix}` : errorMessage(error)
}
