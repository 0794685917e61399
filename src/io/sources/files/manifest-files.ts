// Manifests as files, and the files that a kubeconfig names.

import { existsSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { UserError } from '../../../api/validation/field-errors.ts'
import { makePrivateDirectory, readTextFile, replaceFile } from '../../pki/pki-files.ts'

/** Only for the owner: there may be keys in them. */
const MODE = 0o600

/**
 * Writes each text to `dir`, created when it is missing. All names are looked at first: nothing is written where one exists.
 * @throws {UserError} when one exists and is not to be overwritten
 */
export function writeManifests(dir: string, files: ReadonlyMap<string, string>, overwrite: boolean): void {
  const existing = [...files.keys()].filter((name) => existsSync(join(dir, name)))
  if (existing.length > 0 && !overwrite) {
    throw new UserError(
      `in ${dir} there is already: ${existing.join(', ')}`,
      'give another --dir, or --force to overwrite',
    )
  }
  makePrivateDirectory(dir)
  for (const [name, text] of files) replaceFile(join(dir, name), text, MODE)
}

/** A file that another one names: relative paths are relative to that one. @throws {UserError} */
export function readFileNamedBy(file: string, name: string): string {
  return readTextFile(resolve(dirname(file), name))
}
