// The files of the demo: its directory, the gateway's configuration made of the examples in config/clusters/, the PKI, and
// a kubeconfig.

import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { stringify } from 'yaml'
import { UserError } from '../api/field-errors.ts'
import { createCA, issueCertificate, type KeyPair } from '../io/pki.ts'
import { replaceFile, writeKeyPair } from '../io/pki-files.ts'
import type { DemoBackend } from './demo-clusters.ts'
import { DEMO_TOKENS } from './demo-traffic.ts'

/** What the gateway and its clients need; the same CA signs both. */
export interface DemoPki {
  readonly ca: KeyPair
  readonly serving: KeyPair
  readonly admin: KeyPair
}

const EXAMPLES = join(import.meta.dirname, '../../config/clusters')
/** Marks a directory as the demo's: only such a one is emptied. */
const MARKER = '.portcullis-demo'

/** Makes `dir` anew. @throws {UserError} when it holds something that is not the demo's */
export function prepareDirectory(dir: string): void {
  if (existsSync(dir) && readdirSync(dir).length > 0) {
    if (!existsSync(join(dir, MARKER))) {
      throw new UserError(`${dir} is not empty, and not a directory of the demo`, 'name another one with --dir')
    }
    rmSync(dir, { recursive: true })
  }
  mkdirSync(join(dir, 'config'), { recursive: true })
  writeFileSync(join(dir, MARKER), 'Made by `portcullis demo`, which empties this directory when it starts.\n')
}

export function createDemoPki(): DemoPki {
  const ca = createCA({ commonName: 'portcullis demo CA' })
  const serving = issueCertificate(ca, {
    commonName: 'portcullis',
    usage: 'server',
    dnsNames: ['localhost', 'prod.example.com', '*.prod.example.com', 'staging.example.com'],
    ipAddresses: ['127.0.0.1', '::1'],
  })
  const admin = issueCertificate(ca, { commonName: 'admin', organizations: ['system:masters'], usage: 'client' })
  return { ca, serving, admin }
}

/** The examples, with the endpoints of `backends`, and every file they refer to. Returns the configuration directory. */
export function writeConfiguration(dir: string, pki: DemoPki, backends: readonly DemoBackend[]): string {
  const configDir = join(dir, 'config')
  const pkiDir = join(configDir, 'pki')
  writeKeyPair(pkiDir, 'ca', pki.ca)
  writeKeyPair(pkiDir, 'tls', pki.serving)
  writeKeyPair(pkiDir, 'admin', pki.admin)
  for (const backend of backends) {
    replaceFile(join(pkiDir, `${backend.name}-ca.crt`), backend.ca, 0o644)
    writeKeyPair(pkiDir, `${backend.name}-gateway`, backend.gateway)
    writeFileSync(join(configDir, `${backend.name}.yaml`), exampleFor(backend))
  }
  return configDir
}

/** Text, so that the comments stay: whoever tries the demo is to read and edit it. */
function exampleFor({ name, endpoints }: DemoBackend): string {
  let text = readFileSync(join(EXAMPLES, `${name}.yaml`), 'utf8')
  endpoints.forEach((endpoint, i) => {
    text = text.replaceAll(`https://apiserver-${i + 1}.${name}.example.com:6443`, endpoint)
  })
  return text
}

/** Contexts CLUSTER-admin (certificate) and CLUSTER-alice (token) for each cluster; default-alice names no cluster at all. */
export function writeDemoKubeconfig(dir: string, origin: string, pki: DemoPki, clusters: readonly string[]): string {
  const file = join(dir, 'kubeconfig')
  const authority = { 'certificate-authority-data': base64(pki.ca.certPem) }
  const servers = [
    ...clusters.map((name) => ({ name, server: `${origin}/clusters/${name}` })),
    { name: 'default', server: origin },
  ]
  const context = (cluster: string, user: string): object => ({
    name: `${cluster}-${user}`,
    context: { cluster, user, ...(user === 'alice' ? { namespace: 'shop' } : {}) },
  })
  const admin = { 'client-certificate-data': base64(pki.admin.certPem), 'client-key-data': base64(pki.admin.keyPem) }
  const document = {
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': `${clusters[0] ?? 'default'}-alice`,
    clusters: servers.map(({ name, server }) => ({ name, cluster: { server, ...authority } })),
    users: [
      { name: 'admin', user: admin },
      { name: 'alice', user: { token: DEMO_TOKENS.alice } },
    ],
    contexts: [
      ...clusters.flatMap((name) => [context(name, 'admin'), context(name, 'alice')]),
      context('default', 'alice'),
    ],
  }
  replaceFile(file, stringify(document, { lineWidth: 0 }), 0o600)
  return file
}

function base64(text: string): string {
  return Buffer.from(text).toString('base64')
}
