// An UpstreamCluster with the bytes of the Secrets it refers to, read once.

import { type JsonObject, nameOf } from '../../../kit/api/json/json-object.ts'
import { FieldErrors, UserError } from '../../../kit/api/validation/field-errors.ts'
import type { ObjectName } from '../../../kube/api/object-client.ts'
import { readSecret, referencesOf, type SecretReferenceAt, secretBytes, withBytes } from './secret-references.ts'
import { releaseTerms, secretRefusal, secretRefusalFix, secretReleaseOf } from './secret-release.ts'

/**
 * @param get reads a Secret
 * @param namespaces whose Secrets need no label
 * @throws (rejects) whatever `get` rejects with
 * @throws {UserError} if a Secret is not released to the UpstreamCluster, or lacks the key
 */
export async function readNamedSecrets(
  object: JsonObject,
  get: (at: ObjectName) => Promise<JsonObject>,
  namespaces: readonly string[],
): Promise<JsonObject> {
  const cluster = nameOf(object)
  const out = new FieldErrors()
  const bytes = new Map<SecretReferenceAt, Buffer>()
  for (const reference of referencesOf(object)) {
    // The serving side plays no part in the gateway's own calls.
    if (reference.section !== 'clientConfig' || reference.secret === '') continue
    const [namespace = '', name = ''] = reference.secret.split('/')
    const secret = await get({ namespace, name })
    if (secretReleaseOf(reference.secret, releaseTerms(secret), namespaces, cluster) === 'none') {
      throw new UserError(
        secretRefusal(reference.secret, namespaces, cluster),
        secretRefusalFix(reference.secret, cluster),
      )
    }
    const data = readSecret(secret, out)
    const found = secretBytes(reference, data, { message: '', fix: '' }, out)
    if (found !== undefined) bytes.set(reference, found)
  }
  const [problem] = out.found
  if (problem !== undefined) throw new UserError(`${problem.path} ${problem.message}`, problem.fix)
  return withBytes(object, bytes, []).object as JsonObject
}
