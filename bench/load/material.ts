// What the programs of a run read: certificates, the small object, HAProxy's configuration, UpstreamCluster files.

import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { createCA, issueCertificate } from '../../src/pki/io/pki.ts'

export const HOST = 'bench.example.com'
/** A GET of one small object. */
export const SMALL_PATH = '/api/v1/namespaces/default/configmaps/small'
export const TOKEN = 'bench-token'
const OBJECT_BYTES = 1024
const REVIEW_PATH = '/apis/authentication.k8s.io/v1/tokenreviews'
/** Probes of thousands of clusters would be what is measured. */
const PROBE_INTERVAL_SECONDS = 300
/** tcpmux: nobody listens. Thousands of TLS handshakes at the start would be a test of the upstream. */
const REFUSING_PORT = 1

/** The fastest that was found for large answers: buffers of 32 to 256 KiB and windows of 512 KiB to 4 MiB were tried. */
const TUNED_FOR_LISTS = `
  tune.bufsize 131072
  tune.h2.initial-window-size 1048576`

export interface HAProxyOptions {
  /** How many ports from the upstream's first on. Default 1. */
  readonly endpoints?: number
  /** Buffers and windows for large answers instead of HAProxy's defaults. Default false. */
  readonly tuned?: boolean
  /** A line for each request on stdout, as `option httplog` writes it. Default false. */
  readonly log?: boolean
}

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
  /** Further clusters that nobody asks for, with a server that refuses connections. Default 0. */
  readonly otherClusters?: number
  /** Lists without a limit are refused where they are known to be large. Default false. */
  readonly listGuard?: boolean
  /** docs/list-guard.md's limit: 100 seats for each user, of which lists take what they cost; the client's certificate has no limit. Default false. */
  readonly costLimit?: boolean
}

/** A temporary folder with all of it. */
export class Material {
  readonly folder: string = mkdtempSync(join(tmpdir(), 'portcullis-bench-'))

  constructor() {
    const ca = createCA({ commonName: 'bench CA' })
    const names = { dnsNames: [HOST, 'localhost'], ipAddresses: ['127.0.0.1'] }
    const server = issueCertificate(ca, { commonName: HOST, usage: 'server', ...names })
    const client = issueCertificate(ca, { commonName: 'bench', usage: 'client' })
    this.write('ca.pem', ca.certPem)
    this.write('ca.key', ca.keyPem)
    this.write('server.pem', server.certPem)
    this.write('server.key', server.keyPem)
    this.write('both.pem', server.certPem + server.keyPem)
    this.write('client.pem', client.certPem)
    this.write('client.key', client.keyPem)
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
    const { endpoints = 1, tuned = false, log = false } = options
    const verify = `ssl verify required ca-file ${this.path('ca.pem')} verifyhost ${HOST} alpn h2`
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
  mode http${log ? '\n  log global\n  option httplog' : ''}
  timeout connect 5s
  timeout client 1h
  timeout server 1h
frontend f
  bind 127.0.0.1:${port} ssl crt ${this.path('both.pem')} ca-file ${this.path('ca.pem')} verify optional alpn h2,http/1.1
  option forwardfor
  http-request del-header Impersonate-Group
  http-request set-header Impersonate-User %[ssl_c_s_dn(CN)]
  http-request add-header Impersonate-Group system:authenticated
  http-request set-header Authorization "Bearer gateway"
  default_backend b
backend b
  http-reuse always
${servers.join('\n')}
`,
    )
  }

  /** A folder of UpstreamCluster files, of its own. */
  clusters(name: string, options: ClusterOptions): string {
    this.write(`${name}/bench.yaml`, JSON.stringify(this.#cluster(HOST, options)))
    const others = options.otherClusters ?? 0
    for (let first = 0; first < others; first += CLUSTERS_A_FILE) {
      const length = Math.min(CLUSTERS_A_FILE, others - first)
      const objects = Array.from({ length }, (_, i) => {
        const object = this.#cluster(`other-${first + i}.example.com`, { upstreamPort: REFUSING_PORT, policies: 2 })
        return JSON.stringify(object)
      })
      this.write(`${name}/others-${first}.yaml`, objects.join('\n---\n'))
    }
    return this.path(name)
  }

  #cluster(name: string, options: ClusterOptions): object {
    const { upstreamPort, endpoints = 1, policies = 20, logged = false } = options
    const { listGuard = false, costLimit = false } = options
    const base64 = (file: string): string => readFileSync(this.path(file)).toString('base64')
    const misses = Array.from({ length: policies - 1 }, (_, i) => ({
      rules: [{ verbs: ['get'], apiGroups: ['apps'], resources: [`kind${i}`], users: [`user${i}`] }],
    }))
    const last = {
      flowControlSchemaName: costLimit ? 'agents' : 'all',
      rules: [{ verbs: ['*'], apiGroups: ['*'], resources: ['*'] }],
    }
    const serving = { certData: base64('server.pem'), keyData: base64('server.key'), clientCAData: base64('ca.pem') }
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
