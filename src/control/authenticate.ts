// Who calls the control plane: client certificate, then bearer token, then anonymous. Both come from the control plane's
// own PKI. A credential that is there but wrong is 401, never anonymous.

import type { HeaderList, Peer } from '../api/stream.ts'
import type { UserInfo } from '../api/user.ts'
import { userFromCertificate, withAuthenticatedGroup } from '../core/user-from-cert.ts'
import { readBearerToken } from '../core/websocket-token.ts'
import type { TokenVerifier } from '../io/control-tokens.ts'
import { verifyClientCertificate } from '../io/x509-chain.ts'

export type Caller = UserInfo | 'anonymous' | 'invalid'

export interface AuthenticatorParts {
  /** PEM; what a client certificate may be signed by. */
  readonly clientCAs: readonly string[]
  readonly tokens: TokenVerifier
  /** Wall clock, milliseconds since the epoch. */
  readonly now: () => number
}

/** What the certificate of a connection is worth; `anonymous` = it names nobody, and has no opinion. */
interface CertificateVerdict {
  readonly caller: Caller
  /** When it has to be looked at again. */
  readonly untilMs: number
}

/** Key in the memory of a connection; one listener has one authenticator. */
const MEMO = ':control-certificate'
const NEVER = Number.POSITIVE_INFINITY

/** @returns asked for every request: a connection outlives certificates and tokens */
export function createAuthenticator(parts: AuthenticatorParts): (peer: Peer, head: HeaderList) => Caller {
  const bundle = parts.clientCAs.join('\n')
  return (peer, head) => {
    const nowMs = parts.now()
    const byCertificate = fromCertificate(peer, bundle, nowMs)
    if (typeof byCertificate !== 'string') return byCertificate
    const bearer = readBearerToken(head)
    if (bearer.kind === 'invalid') return 'invalid'
    if (bearer.kind === 'none') return byCertificate
    const user = parts.tokens.verify(bearer.token, nowMs)
    return user === undefined ? 'invalid' : withAuthenticatedGroup(user)
  }
}

function fromCertificate(peer: Peer, bundle: string, nowMs: number): Caller {
  if (peer.certificate === undefined) return 'anonymous'
  const known = peer.memo.get(MEMO) as CertificateVerdict | undefined
  if (known !== undefined && known.untilMs > nowMs) return known.caller
  const fresh = checkCertificate(peer.certificate, bundle, nowMs)
  peer.memo.set(MEMO, fresh)
  return fresh.caller
}

function checkCertificate(
  certificate: NonNullable<Peer['certificate']>,
  bundle: string,
  nowMs: number,
): CertificateVerdict {
  const verified = verifyClientCertificate(certificate, bundle, nowMs)
  // Not to be mended on this connection: neither its chain nor the CAs change.
  if ('error' in verified) return { caller: 'invalid', untilMs: NEVER }
  const user = userFromCertificate(verified.subject, verified.sha256)
  if (user === undefined) return { caller: 'anonymous', untilMs: verified.notAfterMs }
  return { caller: 'error' in user ? 'invalid' : user, untilMs: verified.notAfterMs }
}
