// Tracks which UpstreamClusters refer to which Secrets, and resolves these references.

import { type JsonObject, nameOf } from '../../../../kit/api/json/json-object.ts'
import { FieldErrors } from '../../../../kit/api/validation/field-errors.ts'
import { NamesByKey } from '../../../core/cluster/names-by-key.ts'
import { type Resolved, type SecretReferenceAt, secretBytes, withBytes } from '../../secrets/secret-references.ts'
import { SharedReleases, secretRefusalFix } from '../../secrets/secret-release.ts'
import type { UsableSecret } from '../../secrets/usable-secrets.ts'

/** Looks up Secrets: UsableSecrets, or a test double. */
export interface SecretLookup {
  /** @param cluster that makes the reference */
  get(name: string, cluster: string): UsableSecret
  retain(name: string): void
  release(name: string): void
}

export class ClusterReferences {
  readonly #secrets: SecretLookup
  /** Secret -> clusters that refer to it. */
  readonly #users = new NamesByKey()

  constructor(secrets: SecretLookup) {
    this.#secrets = secrets
  }

  usersOf(secret: string): ReadonlySet<string> {
    return this.#users.get(secret)
  }

  /** Replaces the Secrets read for a cluster. */
  replace(name: string, before: ReadonlySet<string>, after: ReadonlySet<string>): void {
    // New ones first, so that a Secret that stays in use is not dropped in between.
    for (const secret of after) {
      this.#secrets.retain(secret)
      this.#users.add(secret, name)
    }
    for (const secret of before) {
      this.#secrets.release(secret)
      if (!after.has(secret)) this.#users.remove(secret, name)
    }
  }

  /** Those of `secrets` that exist and are not released to the cluster. */
  withheld(secrets: ReadonlySet<string>, cluster: string): readonly string[] {
    return [...secrets].filter((secret) => this.#secrets.get(secret, cluster).withheld === true)
  }

  /** The first reference to a Secret that was not read yet. */
  unread(references: readonly SecretReferenceAt[]): SecretReferenceAt | undefined {
    return references.find(({ secret }) => secret !== '' && this.#secrets.get(secret, '').state === 'unread')
  }

  resolve(object: JsonObject, references: readonly SecretReferenceAt[]): Resolved {
    const out = new FieldErrors()
    const cluster = nameOf(object)
    const releases = new SharedReleases(cluster, out)
    const found = new Map<SecretReferenceAt, Buffer>()
    for (const reference of references) {
      const { secret, path } = reference
      if (secret === '') continue
      const { state, message, data, shared = false } = this.#secrets.get(secret, cluster)
      if (shared) releases.add(path, secret)
      const absence = absenceOf(secret, cluster, state, message)
      const bytes = secretBytes(reference, state === 'present' ? data : undefined, absence, out)
      if (bytes !== undefined) found.set(reference, bytes)
    }
    return withBytes(object, found, out.found)
  }
}

function absenceOf(
  secret: string,
  cluster: string,
  state: UsableSecret['state'],
  message: string,
): { readonly message: string; readonly fix: string } {
  switch (state) {
    case 'unreadable':
      return { message: `Secret ${secret} cannot be read: ${message}`, fix: 'allow the gateway to get it' }
    case 'refused':
      return { message, fix: secretRefusalFix(secret, cluster) }
    default:
      return { message: `Secret ${secret} does not exist`, fix: 'create it, or name another' }
  }
}

// The bytes of the Secrets with which an UpstreamCluster was last valid. While a Secret is broken, other changes of the object come into force with
// them: the degrade switch and revocations must work even then.

/** Keyed by reference: its path, the Secret and the key. */
export type GoodSecrets = ReadonlyMap<string, Buffer>

/** For an object whose references were all resolved. */
export function goodSecretsOf(references: readonly SecretReferenceAt[], { origins, bytes }: Resolved): GoodSecrets {
  const inline = new Map([...origins.values()].map((path, index) => [path, bytes[index] ?? '']))
  return new Map(references.map((one) => [keyOf(one), Buffer.from(inline.get(one.path) ?? '', 'base64')]))
}

/** The object with those bytes; undefined if it has no references, or different ones than when it was valid: bytes from different times may not match. */
export function withGoodSecrets(
  object: JsonObject,
  references: readonly SecretReferenceAt[],
  good: GoodSecrets,
): Resolved | undefined {
  const found = new Map<SecretReferenceAt, Buffer>()
  for (const reference of references) {
    const bytes = good.get(keyOf(reference))
    if (bytes === undefined) return undefined
    found.set(reference, bytes)
  }
  return found.size === 0 || found.size !== good.size ? undefined : withBytes(object, found, [])
}

function keyOf({ path, secret, key }: SecretReferenceAt): string {
  return `${path} ${secret} ${key}`
}
