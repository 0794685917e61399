// Authenticates callers of the control plane: client certificate, then bearer token, then anonymous. Certificates and most tokens are from
// the control plane's own PKI, other tokens from an OpenID provider. An invalid credential gets 401, and is never treated as anonymous.

import type { Revocable } from '../../gateway/core/cluster/revocation.ts'
import { tooManyFailuresMessage } from '../../gateway/core/policy/traffic-messages.ts'
import { readBearerToken } from '../../gateway/core/request/websocket-token.ts'
import { certificateHashes, tokenHashes } from '../../gateway/io/reviews/credential-hashes.ts'
import type { HeaderList, Peer } from '../../kit/api/stream.ts'
import { type StatusError, statusError } from '../../kube/api/status.ts'
import type { UserInfo } from '../../kube/api/user.ts'
import { userFromCertificate, withAuthenticatedGroup } from '../../pki/core/user-from-cert.ts'
import type { TokenVerifier } from '../../pki/io/control-tokens.ts'
import type { IdTokens } from '../../pki/io/id-tokens/id-tokens.ts'
import { verifyClientCertificate } from '../../pki/io/x509-chain.ts'
import type { FailureCounts } from '../../process/api/failure-counts.ts'
import { credentialIds, type RevocationCheck } from './revoked-credentials.ts'

/** A valid but revoked credential. */
interface RevokedCaller {
  readonly user: UserInfo
  /** Message of the refusal. */
  readonly revoked: string
}

export type Caller = UserInfo | 'anonymous' | 'invalid' | RevokedCaller

interface AuthenticatorDeps {
  /** PEM; the CAs of client certificates. Called for every request: they may have changed since the handshake. */
  clientCA(): string
  readonly tokens: TokenVerifier
  /** Tokens of an OpenID provider. Default: none. */
  readonly idTokens?: TokenVerifier | undefined
  /** Default: nothing is revoked. */
  readonly revoked?: RevocationCheck | undefined
  /** Wall clock, milliseconds since the epoch. */
  readonly now: () => number
}

/** The user of a connection's certificate; `anonymous` = there is none, and other credentials decide. */
interface CertificateVerdict {
  readonly caller: UserInfo | 'anonymous' | 'invalid'
  /** Its hashes and ids, which identify it in revocations. */
  readonly hashes: readonly string[]
  /** When it has to be verified again. */
  readonly untilMs: number
  /** The CAs that it was verified with. */
  readonly bundle: string
}

/** Key of the result cached on a connection; each listener has one authenticator. */
const MEMO = ':control-certificate'
const NEVER = Number.POSITIVE_INFINITY
const NOTHING_REVOKED: RevocationCheck = () => ''

/** @returns a function to call for every request: a connection outlives certificates and tokens, and may predate a revocation */
export function createAuthenticator(
  deps: AuthenticatorDeps,
): (peer: Pick<Peer, 'certificate' | 'memo'>, head: HeaderList) => Caller {
  const { tokens, idTokens, revoked = NOTHING_REVOKED } = deps
  return (peer, head) => {
    const nowMs = deps.now()
    const { caller, hashes } = certificateVerdict(peer, deps.clientCA(), nowMs)
    if (typeof caller !== 'string') return unlessRevoked(caller, revoked({ user: caller, kind: 'x509', hashes }))
    const bearer = readBearerToken(head)
    if (bearer.kind === 'invalid') return 'invalid'
    if (bearer.kind === 'none') return caller
    const user = idTokens?.verify(bearer.token, nowMs) ?? tokens.verify(bearer.token, nowMs)
    if (user === undefined) return 'invalid'
    return unlessRevoked(withAuthenticatedGroup(user), revoked(tokenCredential(user, bearer.token)))
  }
}

/** @returns a promise to await before authenticating, for newer keys of the OpenID provider; undefined = no need to wait */
export function createAuthenticationWait(
  idTokens: Pick<IdTokens, 'waitFor'>,
  now: () => number,
): (peer: unknown, head: HeaderList) => Promise<void> | undefined {
  return (_peer, head) => {
    const bearer = readBearerToken(head)
    return bearer.kind === 'token' ? idTokens.waitFor(bearer.token, now()) : undefined
  }
}

/** @param token verified, with the name of the user */
export function tokenCredential(user: UserInfo, token: string): Revocable {
  return { user, kind: 'token', hashes: [...tokenHashes(token), ...credentialIds(user)] }
}

export function isRevoked(caller: Caller): caller is RevokedCaller {
  return typeof caller !== 'string' && 'revoked' in caller
}

function unlessRevoked(user: UserInfo, revoked: string): UserInfo | RevokedCaller {
  return revoked === '' ? user : { user, revoked }
}

function certificateVerdict(
  peer: Pick<Peer, 'certificate' | 'memo'>,
  bundle: string,
  nowMs: number,
): CertificateVerdict {
  if (peer.certificate === undefined) return NO_CERTIFICATE
  const known = peer.memo.get(MEMO) as CertificateVerdict | undefined
  // Usually the same string, so this compares pointers.
  if (known !== undefined && known.untilMs > nowMs && known.bundle === bundle) return known
  const fresh = checkCertificate(peer.certificate, bundle, nowMs)
  peer.memo.set(MEMO, fresh)
  return fresh
}

const NO_CERTIFICATE: CertificateVerdict = { caller: 'anonymous', hashes: [], untilMs: NEVER, bundle: '' }

function checkCertificate(
  certificate: NonNullable<Peer['certificate']>,
  bundle: string,
  nowMs: number,
): CertificateVerdict {
  const verified = verifyClientCertificate(certificate, bundle, nowMs)
  // Final while the CAs are unchanged: the chain of a connection doesn't change.
  if ('error' in verified) return { caller: 'invalid', hashes: [], untilMs: NEVER, bundle }
  const [leaf] = certificate.chain
  const hashes = leaf === undefined ? [] : certificateHashes(leaf)
  const user = userFromCertificate(verified.subject, verified.sha256)
  if (user === undefined) return { caller: 'anonymous', hashes, untilMs: verified.notAfterMs, bundle }
  return { caller: 'error' in user ? 'invalid' : user, hashes, untilMs: verified.notAfterMs, bundle }
}

// Counts failed credentials by source address. A blocked address gets 429 instead of 401 for a wrong
// credential; valid ones are verified in this process, which is cheap, and served as usual.

/** Counts the credential and returns its refusal. */
export function refuseCredential(
  failures: FailureCounts | undefined,
  { addressCharge, certificate, id }: Peer,
  head: HeaderList,
): StatusError {
  if (failures !== undefined) {
    const { source } = addressCharge
    const bearer = readBearerToken(head)
    // A certificate belongs to the connection, and so to all its requests.
    const isToken = bearer.kind === 'token' && certificate === undefined
    failures.failed(source, isToken ? bearer.token : `of connection ${id}`)
    const retryAfterSeconds = failures.waitSeconds(source)
    if (retryAfterSeconds > 0) {
      const message = tooManyFailuresMessage(source, retryAfterSeconds, 'valid credentials are served')
      return statusError('TooManyRequests', message, { retryAfterSeconds })
    }
  }
  return statusError('Unauthorized', 'Unauthorized')
}
