// `portcullis import kubeconfig`: creates an UpstreamCluster, and a Secret with its credentials, for each context of a kubeconfig.

import { parse } from 'yaml'
import { checkUpstreamCluster } from '../../gateway/api/upstream-cluster/checks.ts'
import { USABLE_BY_ANNOTATION } from '../../gateway/io/secrets/secret-release.ts'
import { readFileNamedBy } from '../../gateway/io/sources/files/manifest-files.ts'
import { isRecord, recordOf, textOf } from '../../kit/api/json/object-shape.ts'
import { type Logger, SILENT } from '../../kit/api/ports.ts'
import { errorMessage } from '../../kit/api/validation/error-message.ts'
import { UserError } from '../../kit/api/validation/field-errors.ts'
import { isDnsName, parseEndpoint } from '../../kit/api/validation/name-syntax.ts'
import { toBase64 } from '../../kit/core/text/base64.ts'
import { CONFIG_MAPS } from '../../kube/api/kinds/foreign-kinds.ts'
import { OWN_NAMESPACE } from '../../kube/api/own-names.ts'
import { createKubeClient } from '../../kube/io/client.ts'
import type { KubeConfigOptions } from '../../kube/io/config.ts'
import { nodePemChecks } from '../../pki/io/pem-checks.ts'
import { readTextFile } from '../../pki/io/pki-files.ts'
import { reportUserErrors } from '../command/output.ts'
import { type ImportedCluster, type ImportOutput, printImport, type Remark } from './output.ts'

export interface ImportKubeconfigOptions extends ImportOutput {
  readonly file: string
  /** Namespace of the Secrets. Default portcullis-system. */
  readonly namespace?: string
  /** Don't ask the clusters for the CA of their client certificates. Default false. */
  readonly offline?: boolean
  /** PEM of that CA for the cluster of a context; '' = it has none. Default: asks the cluster. */
  readonly clientCA?: (context: string) => Promise<string>
}

type Loose = Readonly<Record<string, unknown>>

/** Returns the exit code: 1 if the file can't be read, or the object of a context would be rejected. */
export function importKubeconfig(options: ImportKubeconfigOptions): Promise<number> {
  return reportUserErrors(options.err, async () => {
    const { file, namespace = OWN_NAMESPACE, offline = false } = options
    const ask = options.clientCA ?? ((context) => readClientCA({ kubeconfigFile: file, context }, SILENT))
    const config = readKubeconfig(file)
    const contexts = named(config['contexts'], 'context')
    if (contexts.size === 0) throw new UserError(`${file} has no contexts`, 'give a kubeconfig that kubectl can use')
    const names = new Set<string>()
    const imported = [...contexts].map(async ([context, value]) => {
      const name = freeName(context, names)
      const one = new ContextImport(file, config, namespace, name, context, value)
      return await one.result(offline ? undefined : ask)
    })
    return printImport(await Promise.all(imported), options)
  })
}

function readKubeconfig(file: string): Loose {
  const text = readTextFile(file)
  let value: unknown
  try {
    value = parse(text)
  } catch (error) {
    const [reason = ''] = errorMessage(error).split('\n')
    throw new UserError(`${file} is not YAML: ${reason}`, 'give a kubeconfig')
  }
  if (!isRecord(value) || (value['kind'] ?? 'Config') !== 'Config') {
    throw new UserError(`${file} is not a kubeconfig`, 'it begins with apiVersion: v1, kind: Config')
  }
  return value
}

/** The items of a list of `{ name, <key> }`; the first of each name counts, as in kubectl. */
function named(list: unknown, key: string): ReadonlyMap<string, Loose> {
  const found = new Map<string, Loose>()
  for (const item of Array.isArray(list) ? list : []) {
    if (!isRecord(item) || typeof item['name'] !== 'string' || found.has(item['name'])) continue
    found.set(item['name'], recordOf(item[key]))
  }
  return found
}

/** Derives an object name from the name of a context, such as `admin@prod` or `arn:aws:eks:...:cluster/x`. */
function freeName(context: string, taken: Set<string>): string {
  const labels = context
    .toLowerCase()
    .replace(/[^a-z0-9.-]+/g, '-')
    .split('.')
  const plain = labels.map((label) => label.replace(/^-+|-+$/g, '').slice(0, 63)).filter((label) => label !== '')
  const base = plain
    .join('.')
    .slice(0, 200)
    .replace(/[.-]+$/, '')
  const wanted = isDnsName(base) ? base : 'cluster'
  let name = wanted
  for (let i = 2; taken.has(name); i++) name = `${wanted}-${i}`
  taken.add(name)
  return name
}

const ALLOW_ALL = {
  rules: [
    { verbs: ['*'], apiGroups: ['*'], resources: ['*'] },
    { verbs: ['*'], nonResourceURLs: ['*'] },
  ],
}

/** Key of the Secret for the CA of client certificates. */
const CLIENT_CA_KEY = 'client-ca.crt'
const CLIENT_CA_PATH = 'spec.secureServing.clientCARef'

/** Keys of the Secret, and their fields in clientConfig. */
const SECRET_KEYS = { 'ca.crt': 'caRef', 'tls.crt': 'certRef', 'tls.key': 'keyRef', token: 'bearerTokenRef' } as const

class ContextImport {
  readonly #file: string
  readonly #config: Loose
  readonly #namespace: string
  readonly #name: string
  readonly #context: string
  readonly #value: Loose
  readonly #remarks: Remark[] = []
  #isUnverified = false
  /** Base64, by key. */
  readonly #secret: Partial<Record<keyof typeof SECRET_KEYS | typeof CLIENT_CA_KEY, string>> = {}

  constructor(file: string, config: Loose, namespace: string, name: string, context: string, value: Loose) {
    this.#file = file
    this.#config = config
    this.#namespace = namespace
    this.#name = name
    this.#context = context
    this.#value = value
  }

  /** @param clientCA asks the cluster of a context; undefined = offline */
  async result(clientCA: ((context: string) => Promise<string>) | undefined): Promise<ImportedCluster> {
    const upstream = this.#spec()
    const spec = upstream && { ...upstream, ...(await this.#serving(clientCA)) }
    if (spec === undefined) return { name: this.#name, documents: [], remarks: this.#remarks }
    if (this.#name !== this.#context) this.#say('note', `is the context ${JSON.stringify(this.#context)}`)
    const cluster = {
      apiVersion: 'proxy.kubegateway.io/v1alpha1',
      kind: 'UpstreamCluster',
      metadata: { name: this.#name },
      spec,
    }
    for (const { path, message, fix, severity } of checkUpstreamCluster(cluster, nodePemChecks)) {
      this.#remarks.push({ severity, path, message: fix === '' ? message : `${message}; ${fix}` })
    }
    const secret = {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: {
        name: this.#secretName(),
        namespace: this.#namespace,
        annotations: { [USABLE_BY_ANNOTATION]: this.#name },
      },
      type: 'Opaque',
      data: this.#secret,
    }
    const documents = Object.keys(this.#secret).length === 0 ? [cluster] : [secret, cluster]
    return { name: this.#name, documents, remarks: this.#remarks }
  }

  #say(severity: Remark['severity'], message: string, path = ''): void {
    this.#remarks.push({ severity, path, message })
  }

  #secretName(): string {
    return `${this.#name}-upstream`
  }

  /** undefined = it can't be imported; the error was reported. */
  #spec(): object | undefined {
    const { cluster: clusterName, user: userName } = this.#value
    const cluster = named(this.#config['clusters'], 'cluster').get(String(clusterName))
    if (cluster === undefined) {
      this.#say('error', `names no cluster of ${this.#file}: ${JSON.stringify(clusterName)}`)
      return undefined
    }
    const endpoint = this.#endpoint(cluster['server'])
    if (endpoint === undefined) return undefined
    const user = named(this.#config['users'], 'user').get(String(userName))
    if (user === undefined) this.#say('warning', `names no user of ${this.#file}: the gateway has no credential`)
    const secure = this.#security(cluster)
    if (user !== undefined) this.#credentials(user)
    return {
      servers: [{ endpoint }],
      clientConfig: { ...secure, ...this.#references() },
      dispatchPolicies: [ALLOW_ALL],
    }
  }

  #endpoint(server: unknown): string | undefined {
    if (typeof server !== 'string' || server === '') {
      this.#say('error', 'its cluster has no server')
      return undefined
    }
    const endpoint = server.replace(/\/+$/, '')
    const parsed = parseEndpoint(endpoint)
    if (!('error' in parsed)) return endpoint
    this.#say('error', `the server ${JSON.stringify(server)} cannot be an endpoint: it ${parsed.error}`)
    return undefined
  }

  /** Without the CA of client certificates, all users with such a certificate would get 401. */
  async #serving(clientCA: ((context: string) => Promise<string>) | undefined): Promise<object> {
    const pem = await this.#askClientCA(clientCA)
    if (pem === undefined) return {}
    this.#secret[CLIENT_CA_KEY] = toBase64(pem)
    const subjects = 'taken from the ConfigMap kube-system/extension-apiserver-authentication of the cluster'
    this.#say('note', `client certificates are verified with the CA that was ${subjects}`, CLIENT_CA_PATH)
    const reference = { namespace: this.#namespace, name: this.#secretName(), key: CLIENT_CA_KEY }
    return { secureServing: { clientCARef: reference } }
  }

  async #askClientCA(clientCA: ((context: string) => Promise<string>) | undefined): Promise<string | undefined> {
    if (this.#remarks.some(({ severity }) => severity === 'error')) return undefined
    let why = 'no cluster was asked (--offline)'
    if (this.#isUnverified) why = 'a server that is not verified is not trusted'
    else if (clientCA !== undefined) {
      try {
        const pem = await clientCA(this.#context)
        if (pem !== '' && nodePemChecks.certificatesError(pem) === '') return pem
        why = 'the cluster names none, so it accepts none either'
      } catch (error) {
        why = `the cluster does not show it: ${errorMessage(error)}`
      }
    }
    this.#say(
      'warning',
      `users with client certificates get 401: ${why}. Name the CA of their certificates there; ` +
        'kubectl get configmap -n kube-system extension-apiserver-authentication -o yaml shows it as client-ca-file',
      CLIENT_CA_PATH,
    )
    return undefined
  }

  #security(cluster: Loose): object {
    if (typeof cluster['proxy-url'] === 'string')
      this.#say('warning', 'proxy-url is not imported: the gateway connects directly')
    const name = cluster['tls-server-name']
    const serverName = typeof name === 'string' && name !== '' ? { serverName: name } : {}
    if (cluster['insecure-skip-tls-verify'] === true) {
      this.#isUnverified = true
      this.#say(
        'warning',
        'certificates of the servers are not verified; give clientConfig.caRef instead',
        'spec.clientConfig.insecure',
      )
      return { insecure: true, ...serverName }
    }
    this.#take('ca.crt', cluster, 'certificate-authority')
    if (this.#secret['ca.crt'] === undefined) {
      this.#say(
        'warning',
        'the kubeconfig has no certificate-authority: the servers are verified with the CAs of this machine',
      )
    }
    return serverName
  }

  #credentials(user: Loose): void {
    this.#take('tls.crt', user, 'client-certificate')
    this.#take('tls.key', user, 'client-key')
    const { token, tokenFile } = user
    if (typeof token === 'string' && token !== '') this.#secret.token = toBase64(token)
    else if (typeof tokenFile === 'string') {
      const text = this.#read(tokenFile)
      if (text !== undefined) this.#secret.token = toBase64(text.trim())
      this.#say('note', 'the present token of tokenFile is copied: renew the Secret when that file is renewed')
    }
    if (isRecord(user['exec'])) {
      const command = JSON.stringify(user['exec']['command'] ?? '')
      this.#say(
        'error',
        `cannot take over an exec credential (${command}): give the gateway a token or certificate of its own`,
      )
    }
    if (isRecord(user['auth-provider']))
      this.#say('error', 'cannot take over an auth-provider: give a token or certificate')
    if (user['username'] !== undefined)
      this.#say('error', 'cannot take over a password: API servers no longer accept them')
    if (user['as'] !== undefined) this.#say('warning', 'impersonation of the kubeconfig (as) is not imported')
    if (this.#secret['tls.crt'] === undefined && this.#secret.token === undefined) return
    this.#say('note', 'its user must be allowed to impersonate: see deploy/rbac/upstream-gateway-user.yaml')
  }

  /** `key-data` (base64) takes precedence over `key` (a file), as in kubectl. */
  #take(into: keyof typeof SECRET_KEYS, from: Loose, key: string): void {
    const data = from[`${key}-data`]
    const file = from[key]
    if (typeof data === 'string' && data !== '') this.#secret[into] = data.replace(/\s/g, '')
    else if (typeof file === 'string' && file !== '') {
      const text = this.#read(file)
      if (text !== undefined) this.#secret[into] = toBase64(text)
    }
  }

  #read(name: string): string | undefined {
    try {
      return readFileNamedBy(this.#file, name)
    } catch (error) {
      if (!(error instanceof UserError)) throw error
      this.#say('error', error.message)
      return undefined
    }
  }

  #references(): object {
    const entries = Object.entries(SECRET_KEYS).filter(([key]) => Object.hasOwn(this.#secret, key))
    const at = { namespace: this.#namespace, name: this.#secretName() }
    return Object.fromEntries(entries.map(([key, field]) => [field, { ...at, key }]))
  }
}

// The CA of a cluster's client certificates, as published by its kube-apiserver for extension API servers
// (kubernetes/pkg/controlplane/controller/clusterauthenticationtrust).

const AT = { namespace: 'kube-system', name: 'extension-apiserver-authentication' } as const
const TIMEOUT_MS = 5_000

/**
 * PEM; '' = the cluster accepts no client certificates.
 * @throws (rejects) an Error for people if the cluster does not respond within 5 s, or does not publish it
 */
async function readClientCA(options: KubeConfigOptions, log: Logger): Promise<string> {
  const client = createKubeClient({ ...options, log, timeoutMs: TIMEOUT_MS })
  try {
    const { data } = await client.get(CONFIG_MAPS, AT)
    const pem = isRecord(data) ? data['client-ca-file'] : undefined
    return textOf(pem)
  } finally {
    await client.close()
  }
}
