// The bytes of the Secrets with which an UpstreamCluster was last valid. Other changes of the object come into force with
// them while a Secret is broken: the degrade switch and revocations must work then, too.

import type { JsonObject } from '../../../api/kube/json-object.ts'
import { type Resolved, type SecretReferenceAt, withBytes } from '../../secrets/secret-references.ts'

/** By reference: its path, the Secret and the key. */
export type GoodSecrets = ReadonlyMap<string, Buffer>

/** For an object whose references were all resolved. */
export function goodSecretsOf(references: readonly SecretReferenceAt[], { origins, bytes }: Resolved): GoodSecrets {
  const inline = new Map([...origins.values()].map((path, index) => [path, bytes[index] ?? '']))
  return new Map(references.map((one) => [keyOf(one), Buffer.from(inline.get(one.path) ?? '', 'base64')]))
}

/**
 * The object with those bytes; undefined when it has no references, or others than when it was valid: bytes of different times need not
 * fit together.
 */
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
