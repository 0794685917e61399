// RevokedCredential: a user or credential that the embedded API server and the protection webhook refuse.

import type { Revocation } from '../upstream-cluster/upstream-cluster.ts'

/** Exactly one of `user`, `certificateFingerprint`, `tokenHash` and `credentialID`. */
export interface RevokedCredentialSpec extends Revocation {
  /**
   * As audit events have it (extra authentication.kubernetes.io/credential-id): `X509SHA256=` and 64 hex digits, or `JTI=` and the id
   * of a token. For a credential that is not at hand; a file is better, since whoever has a certificate may be able to rewrite its
   * signature, and with it this fingerprint.
   */
  readonly credentialID?: string
  /** Whose it is, for people: the subject of a certificate. */
  readonly subject?: string
}
