// What checks of objects need of a crypto library; src/gateway/io/ implements it.

/** PEM and key checks that need a crypto library; given to `checkUpstreamCluster`. */
export interface PemChecks {
  /** An error text, or '' when `pem` holds at least one certificate and all of them parse. */
  certificatesError(pem: string): string
  /** An error text, or '' when `pem` is a private key. */
  privateKeyError(pem: string): string
  /** Whether the first certificate of `certificatePem` has the public key of `keyPem`; both known to parse. */
  keyMatches(certificatePem: string, keyPem: string): boolean
}
