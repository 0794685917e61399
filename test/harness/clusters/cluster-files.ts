// What the programs of one test cluster read from disk: keys, certificates, tokens.

import { generateKeyPairSync } from 'node:crypto'
import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createCA, type KeyPair } from '../../../src/pki/io/pki.ts'
import { apiserverCertificate, clientCertificate, writeKeyPair } from '../pki.ts'

/** A row of kube-apiserver's --token-auth-file. */
export interface TokenRow {
  readonly token: string
  readonly user: string
  readonly uid: string
  readonly groups?: readonly string[]
}

/** Paths, and the key pairs behind them. */
export interface ClusterFiles {
  readonly dir: string
  readonly ca: KeyPair
  readonly clientCA: KeyPair
  readonly caFile: string
  readonly clientCAFile: string
  readonly serving: { readonly cert: string; readonly key: string }
  readonly serviceAccountKey: string
  readonly tokens: string
}

export function writeClusterFiles(
  name: string,
  clientCA: KeyPair | undefined,
  tokens: readonly TokenRow[],
): ClusterFiles {
  const dir = mkdtempSync(join(tmpdir(), `portcullis-${name}-`))
  const ca = createCA({ commonName: `${name} server CA` })
  const clients = clientCA ?? createCA({ commonName: `${name} client CA` })
  const file = (base: string, text: string): string => {
    writeFileSync(join(dir, base), text, { mode: 0o600 })
    return join(dir, base)
  }
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  return {
    dir,
    ca,
    clientCA: clients,
    caFile: file('ca.crt', ca.certPem),
    clientCAFile: file('client-ca.crt', clients.certPem),
    serving: writeKeyPair(dir, 'apiserver', apiserverCertificate(ca)),
    serviceAccountKey: file('sa.key', privateKey.export({ type: 'pkcs1', format: 'pem' }).toString()),
    tokens: file('tokens.csv', tokens.map(csvRow).join('')),
  }
}

/** The first administrator: system:masters passes every authorisation check. */
export function adminCertificate(clientCA: KeyPair): KeyPair {
  return clientCertificate(clientCA, { commonName: 'admin', organizations: ['system:masters'] })
}

function csvRow({ token, user, uid, groups = [] }: TokenRow): string {
  // An empty fourth column would be a group of its own, with an empty name.
  const fields = groups.length === 0 ? [token, user, uid] : [token, user, uid, groups.join(',')]
  const quoted = fields.map((field) => `"${field.replaceAll('"', '""')}"`)
  return `${quoted.join(',')}\n`
}
