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
import { DEVELOPERS } from './cluster/access.ts'
import type { DemoBackend } from './clusters.ts'
import { type DemoLogin, loginUser, withLogin } from './login/demo-login.ts'
import { DEMO_TOKENS } from './traffic.ts'

/** Certificates of the gateway and its clients, signed by one CA. */
interface DemoPki {
  readonly ca: KeyPair
  readonly serving: KeyPair
  readonly admin: KeyPair
  /** For the clusters that are read as one, which no token reaches. */
  readonly alice: KeyPair
}

/** Namespace of the Secrets. */
const NAMESPACE = 'default'
/** The example in config/protectors: protects the pods of one service, in all clusters. */
export const PROTECTOR: ObjectName = { namespace: 'shop', name: 'web' }
const PROTECTOR_FILE = 'web.yaml'
/** The example in config/federations: the clusters read as one. */
export const FEDERATED_CLUSTER = 'all'
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
  const alice = issueCertificate(ca, { commonName: 'alice', organizations: [DEVELOPERS], usage: 'client' })
  return { ca, serving, admin, alice }
}

/** Objects created in the gateway's API server, in this order; copies are written to `dir`, to be read and applied again. */
export function writeObjects(
  dir: string,
  pki: DemoPki,
  backends: readonly DemoBackend[],
  login?: DemoLogin,
): readonly JsonObject[] {
  const pkiDir = join(dir, 'pki')
  const objectsDir = join(dir, 'objects')
  writeKeyPair(pkiDir, 'ca', pki.ca)
  writeKeyPair(pkiDir, 'tls', pki.serving)
  writeKeyPair(pkiDir, 'admin', pki.admin)
  writeKeyPair(pkiDir, 'alice', pki.alice)
  const all = backends.map(({ name }) => name)
  const secrets = [
    secret('ca', [...all, FEDERATED_CLUSTER], { 'tls.crt': pki.ca.certPem }),
    secret('tls', all, { 'tls.crt': pki.serving.certPem, 'tls.key': pki.serving.keyPem }),
    ...backends.flatMap(({ name, ca, gateway }) => [
      secret(`${name}-ca`, [name], { 'tls.crt': ca }),
      secret(`${name}-gateway`, [name], { 'tls.crt': gateway.certPem, 'tls.key': gateway.keyPem }),
    ]),
  ]
  replaceFile(join(objectsDir, 'secrets.yaml'), secrets.map((one) => `---\n${stringify(one)}`).join(''), 0o600)
  const texts = new Map(backends.map((backend) => [backend.name, withLogin(exampleFor(backend), login)]))
  texts.set(FEDERATED_CLUSTER, exampleText('federations', FEDERATED_CLUSTER))
  const clusters = Array.from(texts, ([name, text]) => {
    writeFileSync(join(objectsDir, `${name}.yaml`), text)
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

/** As text, to keep the comments for the demo's users. Files that it refers to become Secrets. */
function exampleText(folder: 'clusters' | 'federations', name: string): string {
  const text = readFileSync(join(EXAMPLES, folder, `${name}.yaml`), 'utf8').replace(/^#.*\n/gm, '')
  return text.replaceAll(/\{ file: pki\/([a-z-]+)\.(crt|key) \}/g, `{ namespace: ${NAMESPACE}, name: $1, key: tls.$2 }`)
}

/** Pods are protected, as the demo has an API server for PodProtectors, and reads are cached, which its clusters allow. */
function exampleFor({ name, endpoints }: DemoBackend): string {
  let text = exampleText('clusters', name)
  const optional = /^ {2}# (?:podProtection|scaleProtection|cache):.*\n(?: {2}# {3}.*\n)*/gm
  text = text.replaceAll(optional, (block) => block.replaceAll(/^ {2}# /gm, '  '))
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
 * Contexts CLUSTER-admin (certificate), CLUSTER-alice (token) and CLUSTER-login (the user who logs in) for each cluster; default-alice names no
 * cluster; all is alice (certificate) in all clusters; portcullis is the gateway's own API server.
 */
export function writeDemoKubeconfig(
  dir: string,
  origin: string,
  pki: DemoPki,
  clusters: readonly string[],
  control: ControlAccess,
  login: DemoLogin | undefined,
): string {
  const file = join(dir, 'kubeconfig')
  const authority = { 'certificate-authority-data': toBase64(pki.ca.certPem) }
  const servers = [
    ...[...clusters, FEDERATED_CLUSTER].map((name) => ({ name, server: `${origin}/clusters/${name}` })),
    { name: 'default', server: origin },
  ]
  const context = (cluster: string, user: string): object => ({
    name: `${cluster}-${user}`,
    context: { cluster, user, ...(user === 'admin' ? {} : { namespace: 'shop' }) },
  })
  const user = (name: string, { certPem, keyPem }: KeyPair): object => ({
    name,
    user: { 'client-certificate-data': toBase64(certPem), 'client-key-data': toBase64(keyPem) },
  })
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
      user('admin', pki.admin),
      user('alice-certificate', pki.alice),
      { name: 'alice', user: { token: DEMO_TOKENS.alice } },
      ...(login === undefined ? [] : [{ name: 'login', user: loginUser(login) }]),
    ],
    contexts: [
      ...clusters.flatMap((name) => [context(name, 'admin'), context(name, 'alice')]),
      ...(login === undefined ? [] : clusters.map((name) => context(name, 'login'))),
      context('default', 'alice'),
      { name: FEDERATED_CLUSTER, context: { cluster: FEDERATED_CLUSTER, user: 'alice-certificate' } },
      { name: 'portcullis', context: { cluster: 'portcullis', user: 'portcullis-admin' } },
    ],
  }
  replaceFile(file, stringify(document, { lineWidth: 0 }), 0o600)
  return file
}
