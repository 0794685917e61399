// Secret bytes kept in files: `{file}`, and `{name, namespace, key}` for Secrets in the configuration directory.

import { readFile, stat } from 'node:fs/promises'
import { resolve } from 'node:path'
import { errorMessage } from '../../../../kit/api/validation/error-message.ts'
import { childPath, FieldErrors, shown } from '../../../../kit/api/validation/field-errors.ts'
import {
  type Resolved,
  referencesOf,
  type SecretReferenceAt,
  secretBytes,
  withBytes,
} from '../../secrets/secret-references.ts'

const MAX_SECRET_BYTES = 1024 * 1024

/** Secrets by `namespace/name`, each with its keys. */
type Secrets = ReadonlyMap<string, ReadonlyMap<string, Buffer>>

/** Reads referenced files, each once, and records their paths, found or not. */
export class SecretFiles {
  readonly #dir: string
  readonly #read = new Map<string, Promise<Buffer | string>>()

  constructor(dir: string) {
    this.#dir = dir
  }

  /** Absolute paths of all requested files. */
  get paths(): Iterable<string> {
    return this.#read.keys()
  }

  /** The bytes, or why there are none. */
  read(file: string): Promise<Buffer | string> {
    const path = resolve(this.#dir, file)
    const known = this.#read.get(path)
    if (known !== undefined) return known
    const reading = readSecretFile(path)
    this.#read.set(path, reading)
    return reading
  }
}

async function readSecretFile(path: string): Promise<Buffer | string> {
  try {
    if (!(await stat(path)).isFile()) return 'is not a regular file'
    const bytes = await readFile(path)
    if (bytes.length === 0) return 'is empty'
    return bytes.length > MAX_SECRET_BYTES ? 'is larger than 1 MiB' : bytes
  } catch (error) {
    return `cannot be read: ${errorMessage(error)}`
  }
}

/** Skips references that are malformed or conflict with inline bytes: `checkUpstreamCluster` reports them. */
export async function resolveReferences(object: unknown, secrets: Secrets, files: SecretFiles): Promise<Resolved> {
  const out = new FieldErrors()
  const found = new Map<SecretReferenceAt, Buffer>()
  for (const reference of referencesOf(object)) {
    const bytes = await follow(reference, secrets, files, out)
    if (bytes !== undefined) found.set(reference, bytes)
  }
  return withBytes(object, found, out.found)
}

async function follow(
  reference: SecretReferenceAt,
  secrets: Secrets,
  files: SecretFiles,
  out: FieldErrors,
): Promise<Buffer | undefined> {
  const { file, secret, path } = reference
  if (file !== '') {
    const bytes = await files.read(file)
    if (typeof bytes !== 'string') return bytes
    out.invalid(
      childPath(path, 'file'),
      `${shown(file)} ${bytes}`,
      'name a readable file, relative to the directory; `check --no-secrets` looks at the rest',
    )
  }
  if (secret === '') return undefined
  const absence = { message: `Secret ${secret} is not in the directory`, fix: 'add a file with the Secret' }
  return secretBytes(reference, secrets.get(secret), absence, out)
}
