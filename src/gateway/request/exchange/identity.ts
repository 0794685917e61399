// The identity a request runs as, with its impersonation header fields: built once per identity, sent with each request.

import type { Charge, HeaderList, Peer, SharedFields } from '../../../kit/api/stream.ts'
import type { Refusal } from '../../../kit/core/refusal/refusal.ts'
import { userCharge } from '../../../kit/core/shares/charge.ts'
import type { UserInfo } from '../../../kube/api/user.ts'
import type { CredentialOrigin } from '../../api/identity-seen.ts'
import { refuseUnauthorized } from '../../core/admission/steps.ts'
import type { CompiledClient, CompiledCluster } from '../../core/cluster/compiled-cluster.ts'
import { identityHeaders, identityProblem } from '../../core/identity/impersonate.ts'
import { shareWeight } from '../../core/shares/weight.ts'
import type { HeldGrant } from '../../state/access-grants.ts'
import type { IdentityEntry } from '../../state/identities-seen.ts'

export const NO_GRANTS: readonly HeldGrant[] = []

/** A known user that the header fields can express exactly. */
export class Authenticated {
  readonly user: UserInfo
  readonly kind: 'x509' | 'token' | 'anonymous'
  /** Identify the certificate or token in revocations. */
  readonly hashes: readonly string[]
  /** Whose groups are among the user's. */
  readonly grants: readonly HeldGrant[]
  /** undefined = anonymous, or not the sender of a request. */
  origin: CredentialOrigin | undefined = undefined
  /** Where its requests are noted. */
  seen: IdentityEntry | undefined = undefined
  /** The impersonation header fields; never empty. */
  readonly #identity: HeaderList
  #credentials: SharedFields
  #client: CompiledClient | undefined = undefined
  #charge: Charge | undefined = undefined
  #chargedBy: CompiledCluster | undefined = undefined

  constructor(
    user: UserInfo,
    kind: Authenticated['kind'],
    hashes: readonly string[],
    grants: readonly HeldGrant[] = NO_GRANTS,
  ) {
    this.user = user
    this.kind = kind
    this.hashes = hashes
    this.grants = grants
    this.#identity = identityHeaders(user)
    this.#credentials = { list: this.#identity, encoded: undefined }
    // Without an Impersonate-User the request would run as the gateway (CVE-2023-48312).
    if (this.#identity.length === 0) throw new Error('a request without identity must not be forwarded')
  }

  /** The gateway's own token, if any, followed by the user: shared by all requests of this user to a cluster. */
  credentials(client: CompiledClient): SharedFields {
    if (client === this.#client) return this.#credentials
    const own = client.bearerToken === '' ? [] : ['authorization', `Bearer ${client.bearerToken}`]
    this.#credentials = { list: [...own, ...this.#identity], encoded: undefined }
    this.#client = client
    return this.#credentials
  }

  /** Who is charged for its requests to a cluster: the address, if anonymous. */
  chargeIn(cluster: CompiledCluster, peer: Peer): Charge {
    if (this.kind === 'anonymous') return peer.addressCharge
    if (this.#charge !== undefined && cluster === this.#chargedBy) return this.#charge
    this.#chargedBy = cluster
    this.#charge = userCharge(cluster.name, this.user.name, shareWeight(cluster.weights, this.user))
    return this.#charge
  }
}

/** Fails closed: refuses an identity that the header fields can't express exactly. */
export function authenticated(
  user: UserInfo,
  kind: Authenticated['kind'],
  hashes: readonly string[] = NO_HASHES,
  grants: readonly HeldGrant[] = NO_GRANTS,
): Authenticated | Refusal {
  return identityProblem(user) === '' ? new Authenticated(user, kind, hashes, grants) : refuseUnauthorized()
}

const NO_HASHES: readonly string[] = []
