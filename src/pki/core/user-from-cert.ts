// Maps a verified client certificate's subject to a user, like apiserver/pkg/authentication/request/x509/x509.go. Verification itself
// (chain, time, key usage) is done before, by OpenSSL.

import { ANONYMOUS_USER, GROUP_AUTHENTICATED, GROUP_UNAUTHENTICATED, type UserInfo } from '../../kube/api/user.ts'

/** The subject of a certificate: its attributes in order, those of multi-valued RDNs one by one. */
export interface CertificateSubject {
  /** `type` as Node prints it: `CN`, `O`, or a dotted OID. */
  readonly attributes: readonly { readonly type: string; readonly value: string }[]
}

/** Subject attribute that carries the user's UID (apimachinery/pkg/apis/asn1). */
export const UID_OID = '1.3.6.1.4.1.57683.2'
export const CREDENTIAL_ID_KEY = 'authentication.kubernetes.io/credential-id'

/**
 * The user, with system:authenticated among the groups; `undefined` if the certificate has no common name (the next authentication method
 * is tried); `error` if it is invalid (401). `sha256Hex` is the digest of the leaf's DER, in hexadecimal, with or without colons.
 */
export function userFromCertificate(
  subject: CertificateSubject,
  sha256Hex: string,
): UserInfo | { readonly error: string } | undefined {
  let name = ''
  const groups: string[] = []
  const uids: string[] = []
  for (const { type, value } of subject.attributes) {
    // The last of several common names counts (crypto/x509/pkix Name.FillFromRDNSequence).
    if (type === 'CN') name = value
    else if (type === 'O') groups.push(value)
    else if (type === UID_OID) uids.push(value)
  }
  if (name === '') return undefined
  if (uids.length > 1) return { error: `expected 1 UID, but found multiple: [${uids.join(' ')}]` }
  if (uids[0] === '') return { error: 'UID cannot be an empty string' }
  const credential = `X509SHA256=${sha256Hex.replaceAll(':', '').toLowerCase()}`
  return withAuthenticatedGroup({ name, uid: uids[0] ?? '', groups, extra: { [CREDENTIAL_ID_KEY]: [credential] } })
}

/** Adds system:authenticated as kube-apiserver does (authentication/group/authenticated_group_adder.go). */
export function withAuthenticatedGroup(user: UserInfo): UserInfo {
  if (user.name === ANONYMOUS_USER) return user
  if (user.groups.includes(GROUP_AUTHENTICATED) || user.groups.includes(GROUP_UNAUTHENTICATED)) return user
  return { ...user, groups: [...user.groups, GROUP_AUTHENTICATED] }
}
