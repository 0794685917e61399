// SQLite errors as messages for people: a UserError at startup, later a Status with code 500. Result codes: sqlite.org/rescode.html.

import { errorMessage } from '../../../kit/api/validation/error-message.ts'
import { UserError } from '../../../kit/api/validation/field-errors.ts'
import { StatusError, statusError } from '../../../kube/api/status.ts'

const BUSY = 5
const READONLY = 8
const IOERR = 10
const CORRUPT = 11
const FULL = 13
const CANTOPEN = 14
const NOTADB = 26

/** The file is valid SQLite, but its content is not a store's. */
export class StoreDamaged extends Error {}

/** Primary result code of a node:sqlite error; 0 = another error. */
function resultCode(error: unknown): number {
  if (!(error instanceof Error && 'errcode' in error) || typeof error.errcode !== 'number') return 0
  return error.errcode & 0xff
}

/** For an error while opening a store. Errors other than SQLite's are bugs and stay as they are. */
export function openingFailure(error: unknown, file: string): unknown {
  const message = errorMessage(error)
  if (error instanceof StoreDamaged) return damaged(file, message)
  switch (resultCode(error)) {
    case 0:
      return error
    case BUSY:
      return new UserError(`the store ${file} is in use by another program`, 'end that program, or name another file')
    case NOTADB:
      return new UserError(
        `${file} is not an SQLite database`,
        'name the file of a store, one that does not exist yet, or restore a backup',
      )
    case CORRUPT:
      return damaged(file, message)
    case READONLY:
    case CANTOPEN:
      return new UserError(
        `the store ${file} cannot be opened for writing: ${message}`,
        'give this user permission to write to the file, to those next to it and to its directory',
      )
    case FULL:
      return new UserError(`the disk of the store ${file} is full`, 'free some space and start again; nothing was lost')
    default:
      return new UserError(`the store ${file} cannot be opened: ${message}`, 'look at the disk, or restore a backup')
  }
}

/** For an error while reading or writing an open store: 500 InternalError that says what to do. */
export function runningFailure(error: unknown, file: string): unknown {
  if (error instanceof StatusError) return error
  const message = errorMessage(error)
  if (error instanceof StoreDamaged) return refused(`the store ${file} is damaged (${message}): restore a backup`)
  switch (resultCode(error)) {
    case 0:
      return error
    case FULL:
      return refused(`the store ${file} is full (its disk, or its maxBytes); nothing was written: free some space`)
    case IOERR:
      return refused(`the disk of the store ${file} failed (${message}); nothing was written`)
    case CORRUPT:
    case NOTADB:
      return refused(`the store ${file} is damaged (${message}): restore a backup`)
    case READONLY:
      return refused(`the store ${file} can no longer be written: ${message}`)
    case BUSY:
      return refused(`the store ${file} is locked by another program; nothing was written`)
    default:
      return refused(`the store ${file} failed: ${message}`)
  }
}

function damaged(file: string, message: string): UserError {
  return new UserError(`the store ${file} is damaged: ${message}`, 'keep a copy of its files and restore a backup')
}

function refused(message: string): StatusError {
  return statusError('InternalError', message)
}
