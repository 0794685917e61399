// `portcullis control revoke`: locks a user, a certificate or a token out of the embedded API server and the protection webhook.

import { certificateSubject, tokenSubject } from '../../cli/client/revoked-subject.ts'
import { type CommandOutput, reportUserErrors } from '../../cli/command/output.ts'
import type { RevokedCredentialSpec } from '../../gateway/api/revoked-credential.ts'
import { REVOKED_CREDENTIALS } from '../../gateway/api/revoked-credential-kind.ts'
import { controlPaths } from '../../gateway/io/listener/control-paths.ts'
import { readCertificate, sha256 } from '../../gateway/io/reviews/credential-hashes.ts'
import { type JsonObject, nameOf } from '../../kit/api/json/json-object.ts'
import { recordOf } from '../../kit/api/json/object-shape.ts'
import { UserError } from '../../kit/api/validation/field-errors.ts'
import { metaTime } from '../../kit/core/text/meta-time.ts'
import { textTable } from '../../kit/core/text/text-table.ts'
import { apiVersionOf } from '../../kube/api/resource-kind.ts'
import { readControlAdmin } from '../../pki/io/control-pki.ts'
import { nodePemChecks } from '../../pki/io/pem-checks.ts'
import { type LocalObjects, type LocalOptions, withLocalObjects } from '../io/store/local-objects.ts'

export interface ControlRevokeOptions extends LocalOptions, CommandOutput {
  /** Exactly one of the four, unless `list`. */
  readonly user?: string | undefined
  /** PEM, or a kubeconfig: the user of its current context. */
  readonly certificateFile?: string | undefined
  /** A token, or a kubeconfig: the user of its current context. */
  readonly tokenFile?: string | undefined
  /** As in the audit log. */
  readonly credentialId?: string | undefined
  readonly reason?: string | undefined
  /** Removes the revocation. */
  readonly undo: boolean
  readonly list: boolean
  /** Allows revoking even the administrator of this data directory. */
  readonly force: boolean
}

interface Named {
  /** Name of the object: always the same for the same credential. */
  readonly name: string
  readonly spec: RevokedCredentialSpec
  /** Human-readable. */
  readonly text: string
}

/** Resolves with the exit code; by then the revocation is in force and on disk. */
export function controlRevoke(options: ControlRevokeOptions): Promise<number> {
  const { out, err, list, undo } = options
  return reportUserErrors(err, async () => {
    if (list)
      return await withLocalObjects(options, async (objects) => printList(await objects.list(REVOKED_CREDENTIALS), out))
    const named = readNamed(options)
    if (undo) return await withLocalObjects(options, (objects) => takeBack(objects, named, options))
    if (!options.force) checkOwn(options, named)
    return await withLocalObjects(options, (objects) => revoke(objects, named, options))
  })
}

async function revoke(
  objects: LocalObjects,
  named: Named,
  { reason, now, out }: ControlRevokeOptions,
): Promise<number> {
  const spec = { ...named.spec, ...(reason && { reason }), revokedAt: metaTime(now()) }
  const { kind } = REVOKED_CREDENTIALS
  const object = { apiVersion: apiVersionOf(REVOKED_CREDENTIALS), kind, metadata: { name: named.name }, spec }
  const problem = REVOKED_CREDENTIALS.check(object, undefined, nodePemChecks)[0]
  if (problem !== undefined) throw new UserError(`${problem.path} ${problem.message}`, problem.fix)
  const there = await objects.create(REVOKED_CREDENTIALS, object)
  if (keyOf(specOf(there.object)) !== keyOf(spec)) {
    throw new UserError(
      `RevokedCredential ${named.name} is about something else`,
      'remove it with kubectl, or write one of another name',
    )
  }
  const state = !there.isNew
    ? 'was revoked already'
    : objects.running
      ? 'is revoked'
      : 'is revoked from the next start on'
  out(`${named.text} ${state} (RevokedCredential ${named.name})\n`)
  return 0
}

async function takeBack(
  objects: LocalObjects,
  { name, text }: Named,
  { out, err }: ControlRevokeOptions,
): Promise<number> {
  const removed = await objects.remove(REVOKED_CREDENTIALS, name)
  if (removed) out(`${text} is no longer revoked\n`)
  else err(`error: there is no RevokedCredential ${name}; see --list\n`)
  return removed ? 0 : 1
}

function printList(objects: readonly JsonObject[], out: (text: string) => void): number {
  const rows = objects.map((object) => {
    const { user, subject, revokedAt = '', reason = '' } = specOf(object)
    return [nameOf(object), user === undefined ? (subject ?? '') : `user ${user}`, revokedAt, reason]
  })
  out(rows.length === 0 ? 'no credential is revoked\n' : textTable([['NAME', 'WHO', 'SINCE', 'REASON'], ...rows]))
  return 0
}

function readNamed(options: ControlRevokeOptions): Named {
  const { user, certificateFile, tokenFile, credentialId } = options
  const given = [user, certificateFile, tokenFile, credentialId].filter((one) => one !== undefined).length
  if (given !== 1) {
    const ways = 'give one of --user USER, --certificate FILE, --token-file FILE and --credential-id ID, or --list'
    throw new UserError(given === 0 ? 'no user or credential is named' : 'more than one is named', ways)
  }
  if (certificateFile !== undefined) {
    const { name, subjects, fingerprint, text } = certificateSubject(certificateFile)
    // The last one covers every encoding of the token.
    const spec = { ...subjects.at(-1), subject: `${name} (SHA-256 ${fingerprint})` }
    return { name: `certificate-${spec.certificateFingerprint}`, spec, text }
  }
  if (tokenFile !== undefined) {
    const { subject, text } = tokenSubject(tokenFile)
    const spec = { ...subject, subject: 'a token' }
    return { name: `token-${spec.tokenHash}`, spec, text }
  }
  if (credentialId !== undefined) {
    const spec = { credentialID: credentialId, subject: credentialId }
    return { name: `credential-${sha256(credentialId)}`, spec, text: `the credential ${credentialId}` }
  }
  return { name: `user-${readable(user ?? '')}`, spec: { user: user ?? '' }, text: `user ${JSON.stringify(user)}` }
}

/** The user's name, if it is a valid part of an object name; a hash if not, or if it looks like one. */
function readable(user: string): string {
  return /^[a-z0-9](?:[-a-z0-9.]{0,61}[a-z0-9])?$/.test(user) && !user.includes('..') && !/^[0-9a-f]{64}$/.test(user)
    ? user
    : sha256(user)
}

/** Prevents operators from locking themselves out by accident. */
function checkOwn({ dataDir }: ControlRevokeOptions, { spec, text }: Named): void {
  const { pki } = controlPaths(dataDir)
  const { kubeconfig, certificate } = readControlAdmin(pki)
  const own = readCertificate(certificate)
  if (own === undefined) return
  const [fingerprint] = own.hashes
  const byName = spec.user !== undefined && own.subject.split(', ').includes(`CN=${spec.user}`)
  const byHash = spec.certificateFingerprint !== undefined && own.hashes.includes(spec.certificateFingerprint)
  if (!byName && !byHash && spec.credentialID !== `X509SHA256=${fingerprint}`) return
  throw new UserError(
    `${text} is the administrator of ${kubeconfig}, the one credential of role admin that this directory holds`,
    'make another one first (portcullis control kubeconfig --user NAME --group portcullis:admins), then give --force',
  )
}

function specOf({ spec }: JsonObject): RevokedCredentialSpec {
  return recordOf(spec)
}

function keyOf({ user, certificateFingerprint, tokenHash, credentialID }: RevokedCredentialSpec): string {
  return JSON.stringify([user, certificateFingerprint, tokenHash, credentialID])
}
