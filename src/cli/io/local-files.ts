// Files of the machine that a command runs on.

import { existsSync, writeFileSync } from 'node:fs'
import { errorMessage } from '../../kit/api/validation/error-message.ts'
import { UserError } from '../../kit/api/validation/field-errors.ts'

/** Whether a word of a command line is the name of a file: a shell replaces a pattern that is not quoted by the files that match it. */
export function isFileHere(name: string): boolean {
  return existsSync(name)
}

/** Only its owner can read it. @throws {UserError} if it exists, or cannot be written */
export function writeNewFile(file: string, bytes: Buffer): void {
  try {
    writeFileSync(file, bytes, { mode: 0o600, flag: 'wx' })
  } catch (error) {
    throw new UserError(`cannot write ${file}: ${errorMessage(error)}`, 'name a file that does not exist yet')
  }
}
