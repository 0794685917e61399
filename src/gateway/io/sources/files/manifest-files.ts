// Manifests as files, and the files that a kubeconfig names.

import { existsSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { UserError } from '../../../../kit/api/validation/field-errors.ts'
import { makePrivateDirectory, readTextFile, replaceFile } from '../../../../pki/io/pki-files.ts'

/** Readable by the owner only: there may be keys in them. */
const MODE = 0o600

/**
 * Writes each text to `dir`, created when missing. All names are checked first: if one exists, nothing is written.
 * @throws {UserError} when one exists and must not be overwritten
 */
export function writeManifests(dir: string, files: ReadonlyMap<string, string>, overwrite: boolean): void {
  const existing = [...files.keys()].filter((name) => existsSync(join(dir, name)))
  if (existing.length > 0 && !overwrite) {
    throw new UserError(`${dir} already has: ${existing.join(', ')}`, 'give another --dir, or --force to overwrite')
  }
  makePrivateDirectory(dir)
  for (const [name, text] of files) replaceFile(join(dir, name), text, MODE)
}

/** Reads a file that another one refers to: relative paths are relative to that one. @throws {UserError} */
export function readFileNamedBy(file: string, name: string): string {
  return readTextFile(resolve(dirname(file), name))
}
