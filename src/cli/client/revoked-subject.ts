// Identifies what to revoke from files at hand: a certificate, a token, or the kubeconfig of a user.

import type { Revocation } from '../../gateway/api/upstream-cluster/upstream-cluster.ts'
import { isUnrecognisable, readCertificate, revocableTokenHash } from '../../gateway/io/reviews/credential-hashes.ts'
import { isRecord, textOf } from '../../kit/api/json/object-shape.ts'
import { UserError } from '../../kit/api/validation/field-errors.ts'
import { certificateOfUser, currentUserIn, type KubeconfigUser, tokenOfUser } from '../../kube/io/current-user.ts'
import { readTextFile } from '../../pki/io/pki-files.ts'

export type RevokedSubject = Pick<Revocation, 'user' | 'certificateFingerprint' | 'tokenHash'>

interface CertificateSubject {
  /** The subject: `CN=vera, O=portcullis:viewers`. */
  readonly name: string
  /** The usual fingerprint, and one that also matches the certificate with a rewritten signature. */
  readonly subjects: readonly RevokedSubject[]
  /** SHA-256 of the whole certificate, for messages. */
  readonly fingerprint: string
  /** The owner, human-readable. */
  readonly text: string
}

interface TokenSubject {
  readonly subject: RevokedSubject
  /** The owner and the id claimed by the token, human-readable. */
  readonly text: string
}

/** A credential and its owner, human-readable: `user "vera" of vera.kubeconfig`; '' = the file is the credential. */
interface Found {
  readonly text: string
  readonly owner: string
}

/** @throws {UserError} */
export function certificateSubject(file: string): CertificateSubject {
  const { text, owner } = credentialIn(file, certificateOfUser)
  const certificate = readCertificate(text)
  if (certificate === undefined) {
    throw new UserError(
      `${owner || file} holds no PEM certificate`,
      'give the client certificate, such as the client-certificate of a kubeconfig',
    )
  }
  const { subject: name, hashes } = certificate
  const subjects = hashes.map((certificateFingerprint) => ({ certificateFingerprint }))
  const [fingerprint = ''] = hashes
  const told = `the certificate of ${name} (SHA-256 ${fingerprint})${owner && `, ${owner}`}`
  return { name, subjects, fingerprint, text: told }
}

/** @throws {UserError} */
export function tokenSubject(file: string): TokenSubject {
  const { text, owner } = credentialIn(file, tokenOfUser)
  const token = text.trim()
  if (token === '')
    throw new UserError(`${owner || file} is empty`, 'give a file with the bearer token and nothing else')
  if (/\s/.test(token) || isUnrecognisable(token)) {
    throw new UserError(`${owner || file} holds no bearer token`, 'give a file with the bearer token and nothing else')
  }
  const { sub, jti } = claimsOf(token)
  const whose = sub === '' ? '' : ` of ${JSON.stringify(sub)}`
  const id = jti === '' ? '' : ` (JTI=${jti})`
  const told = owner === '' ? `${whose}${id}` : whose === '' ? `${id} of ${owner}` : `${whose}${id}, ${owner}`
  return { subject: { tokenHash: revocableTokenHash(token) }, text: `the token${told}` }
}

/** The current user's credential if the file is a kubeconfig; otherwise the text itself. */
function credentialIn(file: string, read: (user: KubeconfigUser, readFile: (path: string) => string) => string): Found {
  const text = readTextFile(file)
  const user = currentUserIn(text, file)
  return user === undefined ? { text, owner: '' } : { text: read(user, readTextFile), owner: user.owner }
}

/** Claims of a JWT, only for messages: they are not verified. */
function claimsOf(token: string): { readonly sub: string; readonly jti: string } {
  try {
    const claims: unknown = JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString('utf8'))
    const { sub, jti } = isRecord(claims) ? claims : {}
    return {
      sub: textOf(sub).slice(0, MAX_TOLD),
      jti: textOf(jti)
        .replace(/[^\x21-\x7e]/g, '')
        .slice(0, MAX_TOLD),
    }
  } catch {
    return { sub: '', jti: '' }
  }
}

/** Characters of a claim repeated in a message. */
const MAX_TOLD = 100
