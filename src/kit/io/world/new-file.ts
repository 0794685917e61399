// Creates a file that only its owner can read.

import { writeFileSync } from 'node:fs'
import { errorMessage } from '../../api/validation/error-message.ts'
import { UserError } from '../../api/validation/field-errors.ts'

/** @throws {UserError} if it exists, or cannot be written */
export function writeNewFile(file: string, bytes: Buffer): void {
  try {
    writeFileSync(file, bytes, { mode: 0o600, flag: 'wx' })
  } catch (error) {
    throw new UserError(`cannot write ${file}: ${errorMessage(error)}`, 'name a file that does not exist yet')
  }
}
