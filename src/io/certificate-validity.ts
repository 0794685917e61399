// Until when certificates are valid.

import { X509Certificate } from 'node:crypto'

const CERTIFICATE = /-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----/

/** notAfter of the first certificate of a PEM text, in milliseconds since the epoch; undefined when there is none. */
export function certificateEndsMs(pem: string): number | undefined {
  const block = CERTIFICATE.exec(pem)?.[0]
  if (block === undefined) return undefined
  try {
    return new X509Certificate(block).validToDate.getTime()
  } catch {
    return undefined
  }
}
