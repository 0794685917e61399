// Which errors of a TLS handshake count as failures of the client's address.

/** Of an alert that the client has sent, as Node names OpenSSL's reasons: the client has ended the handshake, for a reason of its own. */
const ALERT =
  /^ERR_SSL_(?:TLSV1|TLSV13|SSLV3|SSL\/TLS)_(?:ALERT_|UNRECOGNIZED_NAME|BAD_CERTIFICATE_|CERTIFICATE_UNOBTAINABLE)/

/**
 * Whether the client has sent what cannot be accepted. Not one that has gone, as those do that look whether a port is open, and not one that
 * refuses us: a client with another CA in its configuration guesses nothing, and others behind its address must not suffer.
 */
export function isRefusedByTls(error: Error): boolean {
  const code = String(Reflect.get(error, 'code'))
  return code.startsWith('ERR_SSL_') && !ALERT.test(code)
}
