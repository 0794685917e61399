// Decides which TLS handshake errors count as failures of the client's address.

/** Node's names (from OpenSSL) for an alert sent by the client: the client aborted the handshake for its own reasons. */
const ALERT =
  /^ERR_SSL_(?:TLSV1|TLSV13|SSLV3|SSL\/TLS)_(?:ALERT_|UNRECOGNIZED_NAME|BAD_CERTIFICATE_|CERTIFICATE_UNOBTAINABLE)/

/**
 * Whether the client sent something unacceptable. Disconnects do not count (port checks do that), nor does a client that rejects our certificate: a
 * client configured with another CA is not guessing, and others behind its address must not suffer.
 */
export function isRefusedByTls(error: Error): boolean {
  const code = String(Reflect.get(error, 'code'))
  return code.startsWith('ERR_SSL_') && !ALERT.test(code)
}
