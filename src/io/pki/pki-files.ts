// Certificates and keys as files: NAME.crt (world-readable) and NAME.key (0600). A pair is written as a whole or not at all.

import { createPrivateKey, randomBytes, X509Certificate } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { UserError } from '../../api/validation/field-errors.ts'
import type { KeyPair } from './pki.ts'

/** Creates `dir` (0700) when it is missing. Existing files are replaced; readers see the old pair's file or the new one's. */
export function writeKeyPair(dir: string, name: string, pair: KeyPair): void {
  makePrivateDirectory(dir)
  // The key first: who finds the new certificate finds its key, too.
  replaceFile(join(dir, `${name}.key`), pair.keyPem, 0o600)
  replaceFile(join(dir, `${name}.crt`), pair.certPem, 0o644)
}

export function makePrivateDirectory(dir: string): void {
  inFileSystem(`cannot create ${dir}`, () => mkdirSync(dir, { recursive: true, mode: 0o700 }))
}

/**
 * undefined when there is neither file.
 * @throws {UserError} when one of the two is missing, unreadable, no PEM, or they do not belong together
 */
export function readKeyPair(dir: string, name: string): KeyPair | undefined {
  const certFile = join(dir, `${name}.crt`)
  const keyFile = join(dir, `${name}.key`)
  if (!existsSync(certFile) && !existsSync(keyFile)) return undefined
  const certPem = readTextFile(certFile)
  const keyPem = readTextFile(keyFile)
  return inFileSystem(`${certFile} and ${keyFile} are no certificate and its key`, () => {
    // Throws for a PEM that does not parse.
    const certificate = new X509Certificate(certPem)
    if (!certificate.checkPrivateKey(createPrivateKey(keyPem))) throw new Error('they do not belong together')
    return { certPem, keyPem }
  })
}

/** Those of NAME.crt and NAME.key that exist. */
export function existingPairFiles(dir: string, name: string): string[] {
  return [join(dir, `${name}.crt`), join(dir, `${name}.key`)].filter((file) => existsSync(file))
}

/** @throws {UserError} */
export function readTextFile(file: string): string {
  return inFileSystem(`cannot read ${file}`, () => readFileSync(file, 'utf8'))
}

/** Written beside it and renamed, so that nobody reads half of it; `mode` holds whatever the old file had. */
export function replaceFile(file: string, text: string, mode: number): void {
  const temporary = `${file}.${randomBytes(6).toString('hex')}`
  inFileSystem(`cannot write ${file}`, () => {
    writeFileSync(temporary, text, { mode, flag: 'wx' })
    renameSync(temporary, file)
  })
}

function inFileSystem<T>(failure: string, action: () => T): T {
  try {
    return action()
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    throw new UserError(`${failure}: ${reason}`, 'mend or remove the file, or name another directory')
  }
}
