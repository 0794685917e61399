// What the programs of a run read: certificates, the small object, HAProxy's configuration, UpstreamCluster files.

import { generateKeyPairSync } from 'node:crypto'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { createCA, issueCertificate } from '../../src/pki/io/pki.ts'

export const HOST = 'bench.example.com'
/** A GET of one small object. */
export const SMALL_PATH = '/api/v1/namespaces/default/configmaps/small'
export const TOKEN = 'bench-token'
const OBJECT_BYTES = 1024
const REVIEW_PATH = '/apis/authentication.k8s.io/v1/tokenreviews'
/** Probes of thousands of clusters would be what is measured. */
const PROBE_INTERVAL_SECONDS = 300
/** tcpmux: no server listens. Thousands of TLS handshakes at the start would be a test of the upstream. */
const REFUSING_PORT = 1

/** The fastest that was found for large answers: buffers of 32 to 256 KiB and windows of 512 KiB to 4 MiB were tried. */
const TUNED_FOR_LISTS = `
  tune.bufsize 131072
  tune.h2.initial-window-size 1048576`

/** What the certificates of the client and the proxy are made with, and that of their CA. */
export type Keys = 'p256' | 'rsa'

/** Paths of PEM files. `both` holds the server's certificate and its key. */
export type Certificates = Readonly<Record<'ca' | 'server' | 'serverKey' | 'both' | 'client' | 'clientKey', string>>

const CERTIFICATE_FILES = ['ca.pem', 'server.pem', 'server.key', 'both.pem', 'client.pem', 'client.key']

export interface HAProxyOptions {
  /** How many ports from the upstream's first on. Default 1. */
  readonly endpoints?: number
  /** Buffers and windows for large answers instead of HAProxy's defaults. Default false. */
  readonly tuned?: boolean
  /** A line for each request on stdout, as `option httplog` writes it. Default false. */
  readonly log?: boolean
  /** Default P-256. */
  readonly keys?: Keys
  /** What it offers the upstream. Default h2. */
  readonly upstreamProtocol?: 'h2' | 'http/1.1'
  /** Joins connections and reads nothing (`mode tcp`), TLS on both sides as ever. Default false. */
  readonly splice?: boolean
}

/** What Portcullis does, too. */
const HAPROXY_FIELDS = `  option forwardfor
  http-request del-header Impersonate-Group
  http-request set-header Impersonate-User %[ssl_c_s_dn(CN)]
  http-request add-header Impersonate-Group system:authenticated
  http-request set-header Authorization "Bearer gateway"
`

const ALL = { verbs: ['*'], apiGroups: ['*'], resources: ['*'] }

/** The gateway refuses very large files. */
const CLUSTERS_A_FILE = 100

export interface ClusterOptions {
  readonly upstreamPort: number
  /** Servers of the cluster: this many ports from `upstreamPort` on. Default 1. */
  readonly endpoints?: number
  /** The last one matches. Default 20. */
  readonly policies?: number
  /** A line in the access log for each request, if the gateway has one. Default false. */
  readonly logged?: boolean
  /** Further clusters without requests. Default 0. */
  readonly otherClusters?: number
  /** Where their server listens. Default: nowhere. */
  readonly otherPort?: number
  /** Lists without a limit are refused where they are known to be large. Default false. */
  readonly listGuard?: boolean
  /** Default P-256. */
  readonly keys?: Keys
  /** docs/list-guard.md's limit: 100 seats for each user, of which lists take what they cost; the client's certificate has no limit. Default false. */
  readonly costLimit?: boolean
}

/** An UpstreamCluster as it is written; a row may change its policies. */
export interface UpstreamClusterLike {
  readonly apiVersion: string
  readonly kind: string
  readonly metadata: { readonly name: string }
  readonly spec: { readonly dispatchPolicies: readonly object[]; readonly [field: string]: unknown }
}

/** A temporary folder with all of it. */
export class Material {
  readonly folder: string = mkdtempSync(join(tmpdir(), 'portcullis-bench-'))

  constructor() {
    this.#makeCertificates('.', 'p256')
    this.write(`www${SMALL_PATH}`, 'x'.repeat(OBJECT_BYTES))
    this.write('www/readyz', 'ok')
    const user = { username: 'bench', uid: '1', groups: ['one', 'two', 'three'], extra: {} }
    this.write(`www${REVIEW_PATH}`, JSON.stringify({ status: { authenticated: true, user } }))
  }

  path(name: string): string {
    return join(this.folder, name)
  }

  remove(): void {
    rmSync(this.folder, { recursive: true, force: true })
  }

  /** Writes a file, in a folder of its own where the name has one. Returns its path. */
  write(name: string, text: string): string {
    const file = this.path(name)
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, text)
    return file
  }

  /** The same work in C: the client's certificate verified, its name passed on, the upstream verified, HTTP/2 and TLS twice. */
  haproxyConfig(port: number, upstreamPort: number, options: HAProxyOptions): string {
    const { endpoints = 1, tuned = false, log = false, splice = false, keys } = options
    const { upstreamProtocol = splice ? 'http/1.1' : 'h2' } = options
    const { both, ca } = this.certificates(keys)
    const verify = `ssl verify required ca-file ${this.path('ca.pem')} verifyhost ${HOST} alpn ${upstreamProtocol}`
    const servers = Array.from(
      { length: endpoints },
      (_, i) => `  server s${i} 127.0.0.1:${upstreamPort + i} ${verify}`,
    )
    return this.write(
      `haproxy-${port}.cfg`,
      `global
  nbthread 1
  maxconn 9000${tuned ? TUNED_FOR_LISTS : ''}${log ? '\n  log stdout format raw local0 info' : ''}
defaults
  mode ${splice ? 'tcp' : 'http'}${log ? '\n  log global\n  option httplog' : ''}
  timeout connect 5s
  timeout client 1h
  timeout server 1h
frontend f
  bind 127.0.0.1:${port} ssl crt ${both} ca-file ${ca} verify optional alpn ${splice ? 'http/1.1' : 'h2,http/1.1'}
${splice ? '' : HAPROXY_FIELDS}  default_backend b
backend b
${splice ? '' : '  http-reuse always\n'}${servers.join('\n')}
`,
    )
  }

  /** The same as HAProxy, but the name of the client, which only a script could pass on. TLS records are large from the first on. */
  nghttpxFlags(port: number, upstreamPort: number): string[] {
    const { ca, server, serverKey } = this.certificates()
    return [
      // Debian has one in /etc.
      '--conf=/dev/null',
      `--frontend=127.0.0.1,${port}`,
      `--backend=127.0.0.1,${upstreamPort};;proto=h2;tls;sni=${HOST}`,
      '--workers=1',
      '--single-thread',
      `--cacert=${ca}`,
      '--verify-client',
      `--verify-client-cacert=${ca}`,
      '--add-x-forwarded-for',
      '--add-request-header=Impersonate-User: bench',
      '--add-request-header=Impersonate-Group: system:authenticated',
      '--add-request-header=Authorization: Bearer gateway',
      '--no-via',
      '--no-server-rewrite',
      '--no-location-rewrite',
      '--no-server-push',
      '--no-ocsp',
      '--tls-dyn-rec-warmup-threshold=0',
      '--log-level=ERROR',
      serverKey,
      server,
    ]
  }

  /** The certificates of such keys, which are made when they are asked for first. */
  certificates(keys: Keys = 'p256'): Certificates {
    const folder = keys === 'p256' ? '.' : keys
    if (!existsSync(this.path(folder))) this.#makeCertificates(folder, keys)
    const [ca, server, serverKey, both, client, clientKey] = CERTIFICATE_FILES.map((name) =>
      this.path(join(folder, name)),
    )
    return { ca, server, serverKey, both, client, clientKey } as Certificates
  }

  #makeCertificates(folder: string, keys: Keys): void {
    const newKey = (): { keyPem?: string } => (keys === 'rsa' ? { keyPem: rsaKey() } : {})
    const ca = createCA({ commonName: 'bench CA', ...newKey() })
    const names = { dnsNames: [HOST, 'localhost'], ipAddresses: ['127.0.0.1'] }
    const server = issueCertificate(ca, { commonName: HOST, usage: 'server', ...names, ...newKey() })
    const client = issueCertificate(ca, { commonName: 'bench', usage: 'client', ...newKey() })
    this.write(join(folder, 'ca.pem'), ca.certPem)
    this.write(join(folder, 'ca.key'), ca.keyPem)
    this.write(join(folder, 'server.pem'), server.certPem)
    this.write(join(folder, 'server.key'), server.keyPem)
    this.write(join(folder, 'both.pem'), server.certPem + server.keyPem)
    this.write(join(folder, 'client.pem'), client.certPem)
    this.write(join(folder, 'client.key'), client.keyPem)
  }

  /** A folder of UpstreamCluster files, of its own. */
  clusters(name: string, options: ClusterOptions): string {
    const objects = this.objects(options).map((object) => JSON.stringify(object))
    for (let first = 0; first < objects.length; first += CLUSTERS_A_FILE) {
      this.write(`${name}/clusters-${first}.yaml`, objects.slice(first, first + CLUSTERS_A_FILE).join('\n---\n'))
    }
    return this.path(name)
  }

  /** The cluster that is asked for, and the others after it. */
  objects(options: ClusterOptions): UpstreamClusterLike[] {
    const { otherClusters = 0, otherPort = REFUSING_PORT } = options
    const others = Array.from({ length: otherClusters }, (_, i) =>
      this.#cluster(`other-${i}.example.com`, { upstreamPort: otherPort, policies: 2 }),
    )
    return [this.#cluster(HOST, options), ...others]
  }

  #cluster(name: string, options: ClusterOptions): UpstreamClusterLike {
    const { upstreamPort, endpoints = 1, policies = 20, logged = false } = options
    const { listGuard = false, costLimit = false } = options
    const base64 = (file: string): string => readFileSync(resolve(this.folder, file)).toString('base64')
    const misses = Array.from({ length: policies - 1 }, (_, i) => ({
      rules: [{ verbs: ['get'], apiGroups: ['apps'], resources: [`kind${i}`], users: [`user${i}`] }],
    }))
    const last = {
      flowControlSchemaName: costLimit ? 'agents' : 'all',
      rules: [{ verbs: ['*'], apiGroups: ['*'], resources: ['*'] }],
    }
    const { server, serverKey, ca } = this.certificates(options.keys)
    const serving = { certData: base64(server), keyData: base64(serverKey), clientCAData: base64(ca) }
    return {
      apiVersion: 'proxy.kubegateway.io/v1alpha1',
      kind: 'UpstreamCluster',
      metadata: { name },
      spec: {
        servers: Array.from({ length: endpoints }, (_, i) => ({ endpoint: `https://127.0.0.1:${upstreamPort + i}` })),
        clientConfig: { bearerToken: Buffer.from('gateway').toString('base64'), caData: base64('ca.pem') },
        ...(name === HOST ? { secureServing: serving } : {}),
        authentication: { tokenSuccessTTLSeconds: 3600 },
        flowControl: {
          flowControlSchemas: [
            { name: 'all', tokenBucket: { qps: 1_000_000, burst: 1_000_000 } },
            ...(costLimit ? [{ name: 'agents', maxRequestsInflight: { max: 100 }, perUser: true, cost: true }] : []),
          ],
        },
        dispatchPolicies: [...misses, last],
        ...(logged ? { logging: { mode: 'on' } } : {}),
        ...(listGuard ? { listGuard: {} } : {}),
        ...(costLimit ? { degrade: { exempt: [{ ...ALL, users: ['bench'] }] } } : {}),
        ...(name === HOST ? {} : { healthCheck: { intervalSeconds: PROBE_INTERVAL_SECONDS } }),
      },
    }
  }
}

function rsaKey(): string {
  return generateKeyPairSync('rsa', {
    modulusLength: 2048,
    publicKeyEncoding: { type: 'spki', format: 'pem' },
    privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
  }).privateKey
}
