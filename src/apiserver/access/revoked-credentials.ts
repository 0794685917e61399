// The credentials revoked for this API server: its RevokedCredentials, in force with the write that creates them. Checked for every
// request, last,
// after everything that is cached for a connection.

import type { RevokedCredentialSpec } from '../../gateway/api/revoked-credential.ts'
import { REVOKED_CREDENTIALS } from '../../gateway/api/revoked-credential-kind.ts'
import type { CompiledRevocation } from '../../gateway/core/cluster/compiled-cluster.ts'
import { compileRevocation, type Revocable, revokedPart } from '../../gateway/core/cluster/revocation.ts'
import type { JsonObject } from '../../kit/api/json/json-object.ts'
import { isRecord } from '../../kit/api/json/object-shape.ts'
import { resourceName } from '../../kube/api/resource-kind.ts'
import type { UserInfo } from '../../kube/api/user.ts'
import { CREDENTIAL_ID_KEY } from '../../pki/core/user-from-cert.ts'
import type { ObjectStore } from '../api/object-store.ts'

/** Message of the refusal; '' = not revoked. */
export type RevocationCheck = (credential: Revocable) => string

const CERTIFICATE_ID = 'X509SHA256='

export class RevokedCredentials {
  readonly #specs = new Map<string, RevokedCredentialSpec>()
  #compiled: CompiledRevocation | undefined

  /**
   * @param onChange called after each change is in force
   * @throws if the store can't be read: without the list all callers must be refused
   */
  constructor(store: ObjectStore, onChange: () => void) {
    const resource = resourceName(REVOKED_CREDENTIALS)
    for (const { name, object } of store.list(resource, { namespace: '' })) this.#set(name, object)
    this.#compile()
    store.watch(resource, '', store.revision, ({ type, name, object }) => {
      if (type === 'DELETED') this.#specs.delete(name)
      else this.#set(name, object)
      this.#compile()
      onChange()
    })
  }

  readonly check: RevocationCheck = (credential) => {
    return this.#compiled === undefined ? '' : revokedPart(this.#compiled, credential)
  }

  #set(name: string, { spec }: JsonObject): void {
    if (isRecord(spec)) this.#specs.set(name, spec)
  }

  #compile(): void {
    this.#compiled = compileRevocation([...this.#specs.values()].map(byHash))
  }
}

/** Hashes and ids: see `credentialIds`. */
function byHash(spec: RevokedCredentialSpec): RevokedCredentialSpec {
  const { credentialID: id, ...rest } = spec
  if (id === undefined) return rest
  return id.startsWith(CERTIFICATE_ID) ? { certificateFingerprint: id.slice(CERTIFICATE_ID.length) } : { tokenHash: id }
}

/** The id that its issuer has given a token, in the form of compileRevocation, as another way to identify it. */
export function credentialIds({ extra }: UserInfo): readonly string[] {
  return (extra[CREDENTIAL_ID_KEY] ?? []).map((id) => id.replaceAll(':', '').toLowerCase())
}
