// The credentials revoked for this API server: its RevokedCredentials, in force with the write that creates them. Checked for every request, last,
// after everything that is cached for a connection.

import { REVOKED_CREDENTIALS } from '../../api/kinds/scheme.ts'
import type { JsonObject } from '../../api/kube/json-object.ts'
import { isRecord } from '../../api/kube/object-shape.ts'
import type { UserInfo } from '../../api/kube/user.ts'
import type { ObjectStore } from '../../api/ports/object-store.ts'
import { resourceName } from '../../api/ports/resource-kind.ts'
import type { RevokedCredentialSpec } from '../../api/revoked-credential/revoked-credential.ts'
import type { CompiledRevocation } from '../../core/cluster/compiled-cluster.ts'
import { compileRevocation, type Revocable, revokedPart } from '../../core/cluster/revocation.ts'
import { CREDENTIAL_ID_KEY } from '../../core/identity/user-from-cert.ts'

/** The message of the refusal; '' = the credential is not revoked. */
export type RevocationCheck = (credential: Revocable) => string

const CERTIFICATE_ID = 'X509SHA256='

export class RevokedCredentials {
  readonly #specs = new Map<string, RevokedCredentialSpec>()
  #compiled: CompiledRevocation | undefined

  /**
   * @param onChange called after each change is in force
   * @throws when the store cannot be read: nobody may be admitted without the list
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

/** The id that its issuer has given a token, in the form of compileRevocation, as another way to recognise it. */
export function credentialIds({ extra }: UserInfo): readonly string[] {
  return (extra[CREDENTIAL_ID_KEY] ?? []).map((id) => id.replaceAll(':', '').toLowerCase())
}
