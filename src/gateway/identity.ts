// Who a request runs as, and the header fields that say so upstream: made once for an identity, sent with each request.

import type { HeaderList, SharedFields } from '../api/stream.ts'
import type { UserInfo } from '../api/user.ts'
import type { CompiledClient } from '../core/compiled-cluster.ts'
import { identityHeaders, identityProblem } from '../core/impersonate.ts'
import { type Refusal, refuse } from '../core/refusal.ts'

/** A user that is known, and can be told to upstream exactly. */
export class Authenticated {
  readonly user: UserInfo
  readonly kind: 'x509' | 'token' | 'anonymous'
  /** The impersonation header fields; never empty. */
  readonly #identity: HeaderList
  #credentials: SharedFields
  #client: CompiledClient | undefined = undefined

  constructor(user: UserInfo, kind: Authenticated['kind']) {
    this.user = user
    this.kind = kind
    this.#identity = identityHeaders(user)
    this.#credentials = { list: this.#identity, encoded: undefined }
    // Without an Impersonate-User the request would run as the gateway (CVE-2023-48312).
    if (this.#identity.length === 0) throw new Error('a request without identity must not be forwarded')
  }

  /** The gateway's own token, if it has one, and behind it the user: every request of this user to a cluster has the same. */
  credentials(client: CompiledClient): SharedFields {
    if (client === this.#client) return this.#credentials
    const own = client.bearerToken === '' ? [] : ['authorization', `Bearer ${client.bearerToken}`]
    this.#credentials = { list: [...own, ...this.#identity], encoded: undefined }
    this.#client = client
    return this.#credentials
  }
}

/** Fails closed: an identity that cannot be told to upstream exactly is no identity. */
export function authenticated(user: UserInfo, kind: Authenticated['kind']): Authenticated | Refusal {
  return identityProblem(user) === '' ? new Authenticated(user, kind) : refuse('unauthorized', 'Unauthorized')
}
