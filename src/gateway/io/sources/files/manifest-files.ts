// Reads and writes manifests, and files named by a kubeconfig.

import { existsSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { UserError } from '../../../../kit/api/validation/field-errors.ts'
import { makePrivateDirectory, readTextFile, replaceFile } from '../../../../pki/io/pki-files.ts'

/** Readable by the owner only: they may contain keys. */
const MODE = 0o600

/**
 * Writes each text to `dir`, which is created if missing. Checks all names first: if one exists, nothing is written.
 * @throws {UserError} if one exists and must not be overwritten
 */
export function writeManifests(dir: string, files: ReadonlyMap<string, string>, overwrite: boolean): void {
  const existing = [...files.keys()].filter((name) => existsSync(join(dir, name)))
  if (existing.length > 0 && !overwrite) {
    throw new UserError(`${dir} already has: ${existing.join(', ')}`, 'give another --dir, or --force to overwrite')
  }
  makePrivateDirectory(dir)
  for (const [name, text] of files) replaceFile(join(dir, name), text, MODE)
}

/** Reads a file named by another file: relative paths are relative to the latter. @throws {UserError} */
export function readFileNamedBy(file: string, name: string): string {
  return readTextFile(resolve(dirname(file), name))
}
