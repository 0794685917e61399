// The files of the demo: its directory, the objects (the examples in config/ and the Secrets that they refer to), the PKI,
// and a kubeconfig.

import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parse, stringify } from 'yaml'
import { USABLE_BY_ANNOTATION } from '../gateway/io/secrets/secret-release.ts'
import type { JsonObject } from '../kit/api/json/json-object.ts'
import { UserError } from '../kit/api/validation/field-errors.ts'
import { toBase64 } from '../kit/core/text/base64.ts'
import { PROGRAM_FILES } from '../kit/io/program/build.ts'
import type { ObjectName } from '../kube/api/object-client.ts'
import { createCA, issueCertificate, type KeyPair } from '../pki/io/pki.ts'
import { replaceFile, writeKeyPair } from '../pki/io/pki-files.ts'
import type { DemoBackend } from './clusters.ts'
import { DEMO_TOKENS } from './traffic.ts'

/** Certificates of the gateway and its clients, signed by one CA. */
interface DemoPki {
  readonly ca: KeyPair
  readonly serving: KeyPair
  readonly admin: KeyPair
}

/** Namespace of the Secrets. */
const NAMESPACE = 'default'
/** The example in config/protectors: protects the pods of one service, in all clusters. */
export const PROTECTOR: ObjectName = { namespace: 'shop', name: 'web' }
const PROTECTOR_FILE = 'web.yaml'
const EXAMPLES = PROGRAM_FILES.examples
/** Marks a directory as the demo's: only such a directory is emptied. */
const MARKER = '.portcullis-demo'

/** Creates `dir`, empty. @throws {UserError} if it contains anything that is not the demo's */
export function prepareDirectory(dir: string): void {
  if (existsSync(dir) && readdirSync(dir).length > 0) {
    if (!existsSync(join(dir, MARKER))) {
      throw new UserError(`${dir} is not empty, and not a directory of the demo`, 'name another one with --dir')
    }
    rmSync(dir, { recursive: true })
  }
  mkdirSync(join(dir, 'objects'), { recursive: true })
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

/** Objects created in the gateway's API server, in this order; copies are written to `dir`, to be read and applied again. */
export function writeObjects(dir: string, pki: DemoPki, backends: readonly DemoBackend[]): readonly JsonObject[] {
  const pkiDir = join(dir, 'pki')
  const objectsDir = join(dir, 'objects')
  writeKeyPair(pkiDir, 'ca', pki.ca)
  writeKeyPair(pkiDir, 'tls', pki.serving)
  writeKeyPair(pkiDir, 'admin', pki.admin)
  const all = backends.map(({ name }) => name)
  const secrets = [
    secret('ca', all, { 'tls.crt': pki.ca.certPem }),
    secret('tls', all, { 'tls.crt': pki.serving.certPem, 'tls.key': pki.serving.keyPem }),
    ...backends.flatMap(({ name, ca, gateway }) => [
      secret(`${name}-ca`, [name], { 'tls.crt': ca }),
      secret(`${name}-gateway`, [name], { 'tls.crt': gateway.certPem, 'tls.key': gateway.keyPem }),
    ]),
  ]
  replaceFile(join(objectsDir, 'secrets.yaml'), secrets.map((one) => `---\n${stringify(one)}`).join(''), 0o600)
  const clusters = backends.map((backend) => {
    const text = exampleFor(backend)
    writeFileSync(join(objectsDir, `${backend.name}.yaml`), text)
    return parse(text) as JsonObject
  })
  return [...secrets, ...clusters, ...writeProtector(dir)]
}

/** Separate from the objects that `check` and `explain` read. */
function writeProtector(dir: string): readonly JsonObject[] {
  const text = readFileSync(join(EXAMPLES, 'protectors', PROTECTOR_FILE), 'utf8')
  mkdirSync(join(dir, 'protectors'))
  writeFileSync(join(dir, 'protectors', PROTECTOR_FILE), text)
  const { namespace, name } = PROTECTOR
  const protector = parse(text) as JsonObject
  return [
    { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } },
    { ...protector, metadata: { namespace, name } },
  ]
}

/** @param clusters that may refer to it */
function secret(name: string, clusters: readonly string[], stringData: Readonly<Record<string, string>>): JsonObject {
  const annotations = { [USABLE_BY_ANNOTATION]: clusters.join(',') }
  return { apiVersion: 'v1', kind: 'Secret', metadata: { name, namespace: NAMESPACE, annotations }, stringData }
}

/**
 * As text, to keep the comments for the demo's users. Files that it refers to become Secrets, and pods are
 * protected: the demo has an API server for PodProtectors.
 */
function exampleFor({ name, endpoints }: DemoBackend): string {
  let text = readFileSync(join(EXAMPLES, 'clusters', `${name}.yaml`), 'utf8').replace(/^#.*\n/gm, '')
  text = text.replaceAll(/\{ file: pki\/([a-z-]+)\.(crt|key) \}/g, `{ namespace: ${NAMESPACE}, name: $1, key: tls.$2 }`)
  const protections = /^ {2}# (?:podProtection|scaleProtection):.*\n(?: {2}# {3}.*\n)*/gm
  text = text.replaceAll(protections, (block) => block.replaceAll(/^ {2}# /gm, '  '))
  endpoints.forEach((endpoint, i) => {
    text = text.replaceAll(`https://apiserver-${i + 1}.${name}.example.com:6443`, endpoint)
  })
  return text
}

/** Access to the gateway's own API server, base64 of PEM. */
export interface ControlAccess {
  readonly server: string
  readonly ca: string
  readonly cert: string
  readonly key: string
}

/**
 * Contexts CLUSTER-admin (certificate) and CLUSTER-alice (token) for each cluster; default-alice names no cluster;
 * portcullis is the gateway's own API server.
 */
export function writeDemoKubeconfig(
  dir: string,
  origin: string,
  pki: DemoPki,
  clusters: readonly string[],
  control: ControlAccess,
): string {
  const file = join(dir, 'kubeconfig')
  const authority = { 'certificate-authority-data': toBase64(pki.ca.certPem) }
  const servers = [
    ...clusters.map((name) => ({ name, server: `${origin}/clusters/${name}` })),
    { name: 'default', server: origin },
  ]
  const context = (cluster: string, user: string): object => ({
    name: `${cluster}-${user}`,
    context: { cluster, user, ...(user === 'alice' ? { namespace: 'shop' } : {}) },
  })
  const admin = {
    'client-certificate-data': toBase64(pki.admin.certPem),
    'client-key-data': toBase64(pki.admin.keyPem),
  }
  const document = {
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': `${clusters[0] ?? 'default'}-alice`,
    clusters: [
      ...servers.map(({ name, server }) => ({ name, cluster: { server, ...authority } })),
      { name: 'portcullis', cluster: { server: control.server, 'certificate-authority-data': control.ca } },
    ],
    users: [
      {
        name: 'portcullis-admin',
        user: { 'client-certificate-data': control.cert, 'client-key-data': control.key },
      },
      { name: 'admin', user: admin },
      { name: 'alice', user: { token: DEMO_TOKENS.alice } },
    ],
    contexts: [
      ...clusters.flatMap((name) => [context(name, 'admin'), context(name, 'alice')]),
      context('default', 'alice'),
      { name: 'portcullis', context: { cluster: 'portcullis', user: 'portcullis-admin' } },
    ],
  }
  replaceFile(file, stringify(document, { lineWidth: 0 }), 0o600)
  return file
}
