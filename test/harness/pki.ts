// Certificates of test clusters and gateways.

import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createCA, issueCertificate, type KeyPair } from '../../src/pki/io/pki.ts'

/** Names by which a kube-apiserver on this machine is reached. */
const APISERVER_NAMES = [
  'localhost',
  'kubernetes',
  'kubernetes.default',
  'kubernetes.default.svc',
  'kubernetes.default.svc.cluster.local',
]

/** What a gateway in a test may listen on; 127.0.0.2 and up stand in for VIPs. */
export const LOOPBACK_ADDRESSES: readonly string[] = ['127.0.0.1', '127.0.0.2', '127.0.0.3', '127.0.0.4', '::1']

let sharedGatewayCA: KeyPair | undefined

/** Signs the serving certificates of every gateway that this test process starts. */
export function gatewayCA(): KeyPair {
  sharedGatewayCA ??= createCA({ commonName: 'test gateway CA' })
  return sharedGatewayCA
}

export function apiserverCertificate(ca: KeyPair): KeyPair {
  return serverCertificate(ca, APISERVER_NAMES, ['127.0.0.1', '10.0.0.1'])
}

export function serverCertificate(ca: KeyPair, dnsNames: readonly string[], ipAddresses: readonly string[]): KeyPair {
  return issueCertificate(ca, { commonName: dnsNames[0] ?? 'localhost', dnsNames, ipAddresses, usage: 'server' })
}

/** A user that signs in with a certificate; `uid` in the subject as Kubernetes >= 1.33 reads it. */
export function clientCertificate(
  ca: KeyPair,
  user: { readonly commonName: string; readonly organizations?: readonly string[]; readonly uid?: string },
): KeyPair {
  return issueCertificate(ca, { ...user, usage: 'client' })
}

/** Writes NAME.crt and NAME.key. */
export function writeKeyPair(dir: string, name: string, pair: KeyPair): { cert: string; key: string } {
  const cert = join(dir, `${name}.crt`)
  const key = join(dir, `${name}.key`)
  writeFileSync(cert, pair.certPem)
  writeFileSync(key, pair.keyPem, { mode: 0o600 })
  return { cert, key }
}
