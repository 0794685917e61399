// Checks that need a crypto library; src/pki/ implements them.

/** PEM and key checks that need a crypto library; passed to `checkUpstreamCluster`. */
export interface PemChecks {
  /** An error text, or '' if `pem` holds at least one certificate and all of them parse. */
  certificatesError(pem: string): string
  /** An error text, or '' if `pem` is a private key. */
  privateKeyError(pem: string): string
  /** Whether the first certificate of `certificatePem` has the public key of `keyPem`; both known to parse. */
  keyMatches(certificatePem: string, keyPem: string): boolean
}
