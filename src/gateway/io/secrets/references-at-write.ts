// Checks an object at write time together with the Secrets it refers to: a certificate in place of a key is refused immediately, instead of showing
// up later in the status. A missing Secret is not an error: it may be created after the object.

import { type JsonObject, nameOf } from '../../../kit/api/json/json-object.ts'
import { FieldErrors, UserError } from '../../../kit/api/validation/field-errors.ts'
import { SECRETS } from '../../../kube/api/kinds/secret-kind.ts'
import type { ObjectClient, ObjectName } from '../../../kube/api/object-client.ts'
import { StatusError } from '../../../kube/api/status.ts'
import type { ResolvedReferences } from '../../api/upstream-cluster-kind.ts'
import { readSecret, referencesOf, type SecretReferenceAt, secretBytes, withBytes } from './secret-references.ts'
import { releaseTerms, SharedReleases, secretRefusal, secretRefusalFix, secretReleaseOf } from './secret-release.ts'

/** kube-apiserver waits 10 s for the response by default; the reads must not use that up. */
const TIMEOUT_MS = 2_000
/** Concurrent reads over all reviews: every client that reaches the webhook can trigger reads. Those beyond the limit are skipped. */
const MOST_READS = 32

/** A Secret; undefined = it does not exist; `unknown` = it could not be read. */
export type SecretAtWrite = JsonObject | undefined | 'unknown'

/** @param namespaces whose Secrets need no label */
export function resolveAtWrite(
  object: JsonObject,
  secretOf: (namespace: string, name: string) => SecretAtWrite,
  namespaces: readonly string[],
): ResolvedReferences {
  const out = new FieldErrors()
  const found = new Map<SecretReferenceAt, Buffer>()
  const cluster = nameOf(object)
  const shared = new SharedReleases(cluster, out)
  for (const reference of referencesOf(object)) {
    const { secret: name, path } = reference
    if (name === '') continue
    const [namespace = '', own = ''] = name.split('/')
    const secret = secretOf(namespace, own)
    const known = secret === undefined || secret === 'unknown' ? undefined : secret
    const release = secretReleaseOf(name, known && releaseTerms(known), namespaces, cluster)
    if (release === 'none') {
      out.invalid(path, secretRefusal(name, namespaces, cluster), secretRefusalFix(name, cluster))
    } else if (secret === undefined) {
      out.warning(
        path,
        `Secret ${name} does not exist yet; until it does, the last good version is in force`,
        'create it',
      )
    } else if (known !== undefined) {
      if (release === 'all') shared.add(path, name)
      const absence = { message: '', fix: '' }
      const bytes = secretBytes(reference, readSecret(known, new FieldErrors()), absence, out)
      if (bytes !== undefined) found.set(reference, bytes)
    }
  }
  const { object: resolved, origins } = withBytes(object, found, out.found)
  return { object: resolved, origins, problems: out.found }
}

/** `namespace`, `name` of every Secret that the object refers to. */
function secretsNamed(object: unknown): readonly { readonly namespace: string; readonly name: string }[] {
  const names = new Set(referencesOf(object).map(({ secret }) => secret))
  names.delete('')
  return [...names].map((full) => {
    const [namespace = '', name = ''] = full.split('/')
    return { namespace, name }
  })
}

/**
 * Reads the Secrets that an object under review refers to, for that review: a webhook only knows those of stored objects.
 */
export class SecretsAtWrite {
  readonly #client: ObjectClient
  #reading = 0

  constructor(client: ObjectClient) {
    this.#client = client
  }

  /** Never rejects. Results by namespace and name; whatever could not be read in time is `unknown`. */
  async read(object: unknown): Promise<(namespace: string, name: string) => SecretAtWrite> {
    const found = new Map<string, SecretAtWrite>()
    await Promise.all(
      secretsNamed(object).map(async ({ namespace, name }) => {
        found.set(`${namespace}/${name}`, await this.#one(namespace, name))
      }),
    )
    return (namespace, name) => {
      const key = `${namespace}/${name}`
      return found.has(key) ? found.get(key) : 'unknown'
    }
  }

  async #one(namespace: string, name: string): Promise<SecretAtWrite> {
    if (this.#reading >= MOST_READS) return 'unknown'
    this.#reading++
    const reading = this.#client
      .get(SECRETS, { namespace, name })
      .catch((error: unknown) =>
        error instanceof StatusError && error.code === 404 ? undefined : ('unknown' as const),
      )
      .finally(() => this.#reading--)
    let late: NodeJS.Timeout | undefined
    const timeout = new Promise<'unknown'>((resolve) => {
      late = setTimeout(resolve, TIMEOUT_MS, 'unknown')
    })
    const outcome = await Promise.race([reading, timeout])
    clearTimeout(late)
    return outcome
  }
}

// An UpstreamCluster with the bytes of the Secrets it refers to, read once.

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
