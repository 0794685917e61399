// Who a request runs as, and the header fields that say so upstream: made once for an identity, sent with each request.

import type { Charge, HeaderList, Peer, SharedFields } from '../../../kit/api/stream.ts'
import type { Refusal } from '../../../kit/core/refusal/refusal.ts'
import { userCharge } from '../../../kit/core/shares/charge.ts'
import type { UserInfo } from '../../../kube/api/user.ts'
import { refuseUnauthorized } from '../../core/admission/steps.ts'
import type { CompiledClient, CompiledCluster } from '../../core/cluster/compiled-cluster.ts'
import { identityHeaders, identityProblem } from '../../core/identity/impersonate.ts'
import { weightOf } from '../../core/shares/weight.ts'

/** A user that is known, and can be told to upstream exactly. */
export class Authenticated {
  readonly user: UserInfo
  readonly kind: 'x509' | 'token' | 'anonymous'
  /** What the certificate or token is recognised by when it is revoked. */
  readonly hashes: readonly string[]
  /** The impersonation header fields; never empty. */
  readonly #identity: HeaderList
  #credentials: SharedFields
  #client: CompiledClient | undefined = undefined
  #charge: Charge | undefined = undefined
  #chargedBy: CompiledCluster | undefined = undefined

  constructor(user: UserInfo, kind: Authenticated['kind'], hashes: readonly string[]) {
    this.user = user
    this.kind = kind
    this.hashes = hashes
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

  /** Who pays for what it sends to a cluster: an anonymous one is charged to its address. */
  chargeIn(cluster: CompiledCluster, peer: Peer): Charge {
    if (this.kind === 'anonymous') return peer.addressCharge
    if (this.#charge !== undefined && cluster === this.#chargedBy) return this.#charge
    this.#chargedBy = cluster
    this.#charge = userCharge(cluster.name, this.user.name, weightOf(cluster.weights, this.user))
    return this.#charge
  }
}

/** Fails closed: an identity that upstream could not be told exactly is refused. */
export function authenticated(
  user: UserInfo,
  kind: Authenticated['kind'],
  hashes: readonly string[] = NO_HASHES,
): Authenticated | Refusal {
  return identityProblem(user) === '' ? new Authenticated(user, kind, hashes) : refuseUnauthorized()
}

const NO_HASHES: readonly string[] = []
