// What a metric calls an error.

import { StatusError } from '../api/status.ts'

/** The reason of the Status; `BadSelector`; or `NoAnswer`. Never ''. */
export function errorName(error: unknown): string {
  if (error instanceof SyntaxError) return 'BadSelector'
  return error instanceof StatusError ? error.reason : 'NoAnswer'
}
