// What is to be revoked, as people have it in files: a certificate or a token, or a kubeconfig with one of them inline.

import type { Revocation } from '../../api/upstream-cluster/upstream-cluster.ts'
import { UserError } from '../../api/validation/field-errors.ts'
import { isUnrecognisable, readCertificate, revocableTokenHash } from '../../io/pki/credential-hashes.ts'
import { readTextFile } from '../../io/pki/pki-files.ts'

export type Subject = Pick<Revocation, 'user' | 'certificateFingerprint' | 'tokenHash'>

export interface CertificateSubject {
  /** As its issuer has it: `CN=vera, O=portcullis:viewers`. */
  readonly name: string
  /** As people know its fingerprint, and then the one that a rewritten signature does not escape. */
  readonly subjects: readonly Subject[]
  /** SHA-256 of the whole, for messages. */
  readonly fingerprint: string
}

/** @throws {UserError} */
export function certificateSubject(file: string): CertificateSubject {
  const certificate = readCertificate(inlineOf(readTextFile(file), 'client-certificate-data', decoded))
  if (certificate === undefined) {
    throw new UserError(
      `${file} holds no PEM certificate`,
      'give the client certificate, such as the client-certificate of a kubeconfig',
    )
  }
  const subjects = certificate.hashes.map((certificateFingerprint) => ({ certificateFingerprint }))
  return { name: certificate.subject, subjects, fingerprint: certificate.hashes[0] ?? '' }
}

/** @throws {UserError} */
export function tokenSubject(file: string): Subject {
  const token = inlineOf(readTextFile(file), 'token', (text) => text).trim()
  if (token === '') throw new UserError(`${file} is empty`, 'give a file with the bearer token and nothing else')
  if (/\s/.test(token) || isUnrecognisable(token)) {
    throw new UserError(`${file} holds no bearer token`, 'give a file with the bearer token and nothing else')
  }
  return { tokenHash: revocableTokenHash(token) }
}

/** The value of a field, where the text is a kubeconfig; else the text. */
function inlineOf(text: string, field: string, read: (value: string) => string): string {
  if (!/^kind: *Config *$/m.test(text)) return text
  const value = new RegExp(`^ *(?:- )?${field}: *["']?([^\\s"']+)["']? *$`, 'm').exec(text)?.[1]
  return value === undefined ? text : read(value)
}

function decoded(base64: string): string {
  return Buffer.from(base64, 'base64').toString('utf8')
}
