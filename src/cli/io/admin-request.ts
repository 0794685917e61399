// One request to a gateway's admin listener, from a command or another replica.

import { X509Certificate } from 'node:crypto'
import { type ConnectionOptions, rootCertificates } from 'node:tls'
import { errorMessage } from '../../kit/api/validation/error-message.ts'
import { type BoundedReply, faultCode, faultText, fetchBounded } from '../../kube/io/answers/fetch-bounded.ts'

/** The caller's credential, and which server certificate is accepted. */
export interface AdminCredential {
  readonly headers: Readonly<Record<string, string>>
  /** PEM of an additional CA; '' = none. */
  readonly ca: string
  /** PEM; the server must present exactly this certificate, whatever its names. Default: not required. */
  readonly pinned?: string
  /** Whether Node's CAs are accepted, too. */
  readonly publicCAs: boolean
  /** PEM; '' = none. */
  readonly cert: string
  readonly key: string
  /** Name to verify in the certificate; '' = the URL's. */
  readonly serverName: string
}

interface AdminSend {
  readonly method: string
  /** JSON; undefined = none. */
  readonly body: string | undefined
  readonly credential: AdminCredential
  /** Aborts the request and its response. */
  readonly signal: AbortSignal
}

/** Resolves with the response head. @throws (rejects) like fetchBounded; `adminFault` describes it */
export function sendAdmin(url: URL, { method, body, credential, signal }: AdminSend): Promise<BoundedReply> {
  const headers = {
    ...credential.headers,
    'user-agent': 'portcullis',
    ...(body !== undefined && { 'content-type': 'application/json' }),
  }
  const tls = url.protocol === 'https:' ? tlsOf(credential) : {}
  return fetchBounded(url, { method, headers, body, tls, signal })
}

/** One line. */
export function adminFault(error: unknown): string {
  switch (mismatchOf(error)) {
    case 'plain':
      return 'it does not speak TLS'
    case 'untrusted':
      return 'its certificate is not signed by a known CA'
    default:
      return faultText(error)
  }
}

/**
 * How client and server mismatch: `plain`, TLS was spoken to a port without it; `hung-up`, the connection was closed or the response was not HTTP, as
 * from a TLS port; `untrusted`, the certificate comes from another CA.
 */
export function mismatchOf(error: unknown): 'plain' | 'hung-up' | 'untrusted' | undefined {
  const code = faultCode(error)
  if (code === 'EPROTO' || code === 'ERR_SSL_WRONG_VERSION_NUMBER') {
    return /wrong version number|packet length too long/.test(errorMessage(error)) ? 'plain' : undefined
  }
  if (code === 'ECONNRESET' || code === 'UND_ERR_SOCKET' || code.startsWith('HPE_')) return 'hung-up'
  return UNTRUSTED.has(code) ? 'untrusted' : undefined
}

const UNTRUSTED: ReadonlySet<string> = new Set([
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'UNABLE_TO_GET_ISSUER_CERT',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
])

function tlsOf({ ca, pinned = '', publicCAs, cert, key, serverName }: AdminCredential): ConnectionOptions {
  return {
    ...(pinned === ''
      ? { ca: [...(publicCAs ? rootCertificates : []), ...(ca === '' ? [] : [ca])] }
      : pinnedTo(pinned)),
    ...(cert !== '' && { cert, key }),
    ...(serverName !== '' && { servername: serverName }),
  }
}

function pinnedTo(pem: string): ConnectionOptions {
  const { raw } = new X509Certificate(pem)
  return {
    ca: pem,
    allowPartialTrustChain: true,
    checkServerIdentity: (_, peer) => (raw.equals(peer.raw) ? undefined : new Error('it has another certificate')),
  }
}
