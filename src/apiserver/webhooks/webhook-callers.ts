// Authenticates callers of the protection webhook: only kube-apiservers of the cell in the request are accepted. A caller for arbitrary cells
// could fill their admission histories, and so block deletions.

import { readBearerToken } from '../../gateway/core/request/websocket-token.ts'
import type { HeaderList, Peer } from '../../kit/api/stream.ts'
import { ownUserCharge } from '../../kit/core/shares/charge.ts'
import type { UserInfo } from '../../kube/api/user.ts'
import type { TokenVerifier } from '../../pki/io/control-tokens.ts'
import type { WebhookTokens } from '../../pki/io/webhook-tokens.ts'
import { createAuthenticator, isRevoked, tokenCredential } from '../access/authenticate.ts'
import type { RevocationCheck } from '../access/revoked-credentials.ts'

/** Group in client certificates and tokens that the control plane signs. */
export const WEBHOOKS_GROUP = 'portcullis:webhooks'

/** User name in such a credential: it binds to one cell. */
export function webhookUser(cell: string): string {
  return `portcullis:webhook:${cell}`
}

export type WebhookCaller =
  /** By certificate or by Authorization. */
  | 'trusted'
  /**
   * By a token in the path. kube-apiserver shows the URL to users whose deletion fails because the webhook is unreachable: others may know it,
   * too.
   */
  | 'by-path'
  | 'unauthenticated'
  /** Authenticated, but not for this cell. */
  | 'other'

/** @param pathToken undefined = the path has none */
export type WebhookAuthenticator = (
  peer: Peer,
  head: HeaderList,
  cell: string,
  pathToken: string | undefined,
) => WebhookCaller

interface WebhookAuthenticatorDeps {
  /** PEM; what a client certificate may be signed by, now. */
  clientCA(): string
  readonly tokens: TokenVerifier
  readonly webhookTokens: WebhookTokens
  /** Default: nothing is revoked. */
  readonly revoked?: RevocationCheck | undefined
  /** Wall clock, milliseconds since the epoch. */
  readonly now: () => number
}

export function createWebhookAuthenticator(deps: WebhookAuthenticatorDeps): WebhookAuthenticator {
  const { tokens, webhookTokens, now, revoked = () => '' } = deps
  const authenticate = createAuthenticator(deps)
  const isGood = (user: UserInfo, token: string): boolean => revoked(tokenCredential(user, token)) === ''
  return (peer, head, cell, pathToken) => {
    const own: UserInfo = { name: webhookUser(cell), uid: '', groups: [WEBHOOKS_GROUP], extra: {} }
    const bearer = readBearerToken(head)
    if (bearer.kind === 'token' && webhookTokens.isTokenOf(cell, bearer.token)) {
      return isGood(own, bearer.token) ? trust(peer, cell) : 'unauthenticated'
    }
    const caller = authenticate(peer, head)
    // The certificate of a connection stays refused: a new connection may be verified by a CA added since.
    if (caller === 'invalid' && peer.certificate !== undefined) peer.drain()
    if (caller === 'invalid' || isRevoked(caller)) return 'unauthenticated'
    if (caller !== 'anonymous') return isOf(cell, caller) ? trust(peer, cell) : 'other'
    if (pathToken === undefined) return 'unauthenticated'
    if (webhookTokens.isTokenOf(cell, pathToken)) return isGood(own, pathToken) ? 'by-path' : 'unauthenticated'
    const user = tokens.verify(pathToken, now())
    if (user === undefined || !isGood(user, pathToken)) return 'unauthenticated'
    return isOf(cell, user) ? 'by-path' : 'other'
  }
}

/** From here on the user pays for the connection, not the address. With a token in the path the address goes on paying: others may know that token. */
function trust(peer: Peer, cell: string): 'trusted' {
  peer.charge = ownUserCharge(webhookUser(cell))
  return 'trusted'
}

function isOf(cell: string, { name, groups }: { readonly name: string; readonly groups: readonly string[] }): boolean {
  return name === webhookUser(cell) && groups.includes(WEBHOOKS_GROUP)
}
