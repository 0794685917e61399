// Label value of an error in metrics.

import { StatusError } from '../api/status.ts'

/** The reason of the Status; `BadSelector`; or `NoAnswer`. Never ''. */
export function errorName(error: unknown): string {
  if (error instanceof SyntaxError) return 'BadSelector'
  return error instanceof StatusError ? error.reason : 'NoAnswer'
}
