// A real Kubernetes cluster on this machine: etcd, kube-apiservers, and as much of the rest as a test asks for.

import { rmSync } from 'node:fs'
import { Agent } from 'node:https'
import { join } from 'node:path'
import type { KeyPair } from '../../../src/pki/io/pki.ts'
import { type Binaries, binaries } from '../binaries.ts'
import { type KubectlOptions, type KubectlResult, kubectl } from '../kubectl/kubectl.ts'
import { clientCertificate } from '../pki.ts'
import type { RunningProcess } from '../process.ts'
import { waitFor } from '../wait.ts'
import { startApiservers, type TestApiserver } from './apiserver.ts'
import { adminCertificate, type ClusterFiles, type TokenRow, writeClusterFiles } from './cluster-files.ts'
import {
  type ComponentOptions,
  startControllerManager,
  startKubelet,
  startKwok,
  startScheduler,
  type TestKubelet,
} from './components.ts'
import { startEtcd, type TestEtcd } from './etcd.ts'
import { type KubeRequest, type KubeResponse, kubeRequest } from './kube-request.ts'
import { type Credentials, writeKubeconfig } from './kubeconfig.ts'

export interface ClusterOptions {
  /** Default `test`. A DNS label. */
  readonly name?: string
  /** Default 1. */
  readonly apiservers?: 1 | 2
  /** All four default to false. They talk to apiserver 0 unless told another kubeconfig. */
  readonly controllerManager?: boolean | ComponentOptions
  readonly scheduler?: boolean | ComponentOptions
  /** Makes nodes and pods Ready. */
  readonly kwok?: boolean | ComponentOptions
  /** exec, attach, logs, port-forward and cp; needs kwok. `forward`: host:port behind every container port (default: echo). */
  readonly kubelet?: boolean | { readonly forward: string }
  /** Nodes to create. Default 0. */
  readonly nodes?: number
  readonly extraApiserverFlags?: readonly string[]
  /** Signs client certificates. Default: one of its own. */
  readonly clientCA?: KeyPair
  /** Users with static tokens. */
  readonly tokens?: readonly TokenRow[]
}

const GATEWAY_USER = 'portcullis'
const GATEWAY_RBAC = join(import.meta.dirname, '../../../deploy/rbac/upstream-gateway-user.yaml')

/** Starts a cluster; ready when this resolves. Whatever was started ends with `stop()`, or else with this process. */
export async function startCluster(options: ClusterOptions = {}): Promise<TestCluster> {
  const programs = await binaries()
  const name = options.name ?? 'test'
  const token = `gateway-token-${name}`
  const rows: TokenRow[] = [{ token, user: GATEWAY_USER, uid: 'portcullis-uid' }, ...(options.tokens ?? [])]
  const files = writeClusterFiles(name, options.clientCA, rows)
  const etcd = await startEtcd(programs, files.dir)
  const flags = options.extraApiserverFlags ?? []
  try {
    const apiservers = await startApiservers(programs, files, etcd.url, options.apiservers ?? 1, flags)
    const cluster = new TestCluster(name, programs, files, apiservers, etcd, token)
    await cluster.begin(options).catch(async (error: unknown) => {
      await cluster.stop()
      throw error
    })
    return cluster
  } catch (error) {
    await etcd.stop()
    throw error
  }
}

export class TestCluster {
  readonly name: string
  /** Logs, keys and kubeconfigs. Removed by `stop()`, unless PORTCULLIS_KEEP is set. */
  readonly dir: string
  /** Signs the apiservers' serving certificates. */
  readonly ca: KeyPair
  readonly clientCA: KeyPair
  readonly apiservers: readonly TestApiserver[]
  readonly etcd: TestEtcd
  /** The kubeconfig of an administrator (system:masters), direct to apiserver 0. */
  readonly adminKubeconfig: string
  readonly admin: { readonly cert: KeyPair }
  /** The gateway's own user, by certificate and by token: may impersonate and review, nothing else. */
  readonly gatewayUser: { readonly cert: KeyPair; readonly token: string }
  kubelet: TestKubelet | undefined

  readonly #programs: Binaries
  readonly #files: ClusterFiles
  readonly #processes: RunningProcess[] = []
  #kubeletProcess: RunningProcess | undefined
  #kubeconfigs = 0
  #nodes = 0
  readonly #components = new Set<string>()
  /** A handshake costs both sides more than most requests. */
  readonly #agent = new Agent({ keepAlive: true, timeout: 5000 })

  constructor(
    name: string,
    programs: Binaries,
    files: ClusterFiles,
    apiservers: readonly TestApiserver[],
    etcd: TestEtcd,
    gatewayToken: string,
  ) {
    this.name = name
    this.#programs = programs
    this.#files = files
    this.etcd = etcd
    this.dir = files.dir
    this.ca = files.ca
    this.clientCA = files.clientCA
    this.apiservers = apiservers
    this.admin = { cert: adminCertificate(files.clientCA) }
    this.gatewayUser = { cert: this.clientCertificate(GATEWAY_USER), token: gatewayToken }
    this.adminKubeconfig = this.kubeconfigFor(this.admin)
  }

  /** Called once by `startCluster`. */
  async begin(options: ClusterOptions): Promise<void> {
    const start = async (
      wanted: boolean | ComponentOptions | undefined,
      starter: (options: ComponentOptions) => Promise<RunningProcess>,
    ): Promise<void> => {
      if (wanted) await starter(wanted === true ? {} : wanted)
    }
    const kubelet = options.kubelet ?? false
    if (kubelet !== false) await this.#startKubelet(kubelet === true ? undefined : kubelet.forward)
    await Promise.all([
      this.#grantGatewayUser(),
      start(options.controllerManager, (component) => this.startControllerManager(component)),
      start(options.scheduler, (component) => this.startScheduler(component)),
      start(options.kwok, (component) => this.startKwok(component)),
    ])
    if (options.controllerManager) await this.#waitForDefaultServiceAccount()
    if (options.nodes !== undefined) await this.createNodes(options.nodes)
  }

  /** A kubeconfig file for a user; `server` defaults to apiserver 0. */
  kubeconfigFor(user: Credentials, server?: string): string {
    return writeKubeconfig(this.newKubeconfigPath(), { server: server ?? this.#url(), ca: this.ca.certPem, user })
  }

  /** A path in the cluster's folder that no other kubeconfig has. */
  newKubeconfigPath(): string {
    return join(this.dir, `kubeconfig-${++this.#kubeconfigs}.yaml`)
  }

  clientCertificate(commonName: string, organizations: readonly string[] = [], uid?: string): KeyPair {
    return clientCertificate(this.clientCA, { commonName, organizations, ...(uid !== undefined && { uid }) })
  }

  /** Runs kubectl as the administrator, direct to apiserver 0, unless given another kubeconfig. Never throws on its failure. */
  kubectl(args: readonly string[], options: Partial<KubectlOptions> = {}): Promise<KubectlResult> {
    return kubectl(args, { kubeconfig: this.adminKubeconfig, ...options })
  }

  /** As `kubectl` with text for its stdin; throws when it fails. Returns what it printed. */
  async apply(manifests: string, args: readonly string[] = []): Promise<string> {
    const result = await this.kubectl(['apply', '-f', '-', ...args], { stdin: manifests })
    if (result.code !== 0) throw new Error(`kubectl apply: ${result.stderr}`)
    return result.stdout
  }

  /** One request to apiserver 0, as the administrator unless told otherwise. */
  request(path: string, options: Partial<KubeRequest> = {}): Promise<KubeResponse> {
    return kubeRequest({
      server: this.#url(),
      ca: this.ca.certPem,
      user: this.admin,
      path,
      agent: this.#agent,
      ...options,
    })
  }

  /** Who the component is when it talks to the cluster, direct or through a gateway. */
  componentUser(component: 'kube-controller-manager' | 'kube-scheduler' | 'kwok'): { readonly cert: KeyPair } {
    if (component === 'kwok') return this.admin // it acts as every node
    return { cert: this.clientCertificate(`system:${component}`) }
  }

  async startControllerManager(options: ComponentOptions = {}): Promise<RunningProcess> {
    const kubeconfig = options.kubeconfig ?? this.kubeconfigFor(this.componentUser('kube-controller-manager'))
    return this.#own(await startControllerManager(this.#programs, this.#files, kubeconfig, options))
  }

  async startScheduler(options: ComponentOptions = {}): Promise<RunningProcess> {
    const kubeconfig = options.kubeconfig ?? this.kubeconfigFor(this.componentUser('kube-scheduler'))
    return this.#own(await startScheduler(this.#programs, this.#files, kubeconfig, options))
  }

  async startKwok(options: ComponentOptions = {}): Promise<RunningProcess> {
    const kubeconfig = options.kubeconfig ?? this.adminKubeconfig
    const kwok = await startKwok(this.#programs, this.#files, kubeconfig, this.kubelet?.port, options.flags ?? [])
    return this.#own(kwok)
  }

  /** Creates nodes `node-0`, `node-1` ... (counting on), and waits until they are Ready where kwok runs. */
  async createNodes(count: number): Promise<string[]> {
    const names = Array.from({ length: count }, () => `node-${this.#nodes++}`)
    await Promise.all(
      names.map(async (name) => {
        const created = await this.request('/api/v1/nodes', { method: 'POST', body: nodeObject(name) })
        if (created.status !== 201) throw new Error(`creating node ${name}: ${created.text}`)
      }),
    )
    if (this.#components.has('kwok'))
      await Promise.all(names.map((name) => waitFor(`${name} to be Ready`, () => this.#isReady(name))))
    return names
  }

  /** Process ids of everything that belongs to the cluster and may run. */
  pids(): number[] {
    return [
      this.etcd.pid,
      ...this.apiservers.map((apiserver) => apiserver.pid),
      ...this.#processes.map((process) => process.pid),
    ]
  }

  /** Ends everything and removes the folder. May be called twice. */
  async stop(): Promise<void> {
    await this.#kubeletProcess?.stop() // it ends what runs in its "containers"
    // What is being ended has nothing worth saving, and a graceful end of kube-apiserver waits for its watches.
    await Promise.all(this.#processes.map((process) => process.stop(0)))
    await Promise.all(this.apiservers.map((apiserver) => apiserver.kill()))
    await this.etcd.stop()
    this.#agent.destroy()
    if (process.env['PORTCULLIS_KEEP'] === undefined) rmSync(this.dir, { recursive: true, force: true })
  }

  #url(): string {
    const [first] = this.apiservers
    if (first === undefined) throw new Error('a cluster has at least one apiserver')
    return first.url
  }

  #own(process: RunningProcess): RunningProcess {
    this.#processes.push(process)
    this.#components.add(process.name)
    return process
  }

  async #startKubelet(forward: string | undefined): Promise<void> {
    const { process, kubelet } = await startKubelet(this.#programs, this.#files, forward)
    this.#kubeletProcess = this.#own(process)
    this.kubelet = kubelet
  }

  /** Done when every apiserver has seen it: each reads roles through a watch of its own. */
  async #grantGatewayUser(): Promise<void> {
    const applied = await this.kubectl(['apply', '-f', GATEWAY_RBAC])
    if (applied.code !== 0) throw new Error(`granting the gateway's user its rights: ${applied.stderr}`)
    const body = {
      apiVersion: 'authorization.k8s.io/v1',
      kind: 'SelfSubjectAccessReview',
      spec: { resourceAttributes: { verb: 'impersonate', resource: 'users' } },
    }
    const path = '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews'
    const user = { cert: this.gatewayUser.cert }
    for (const { url } of this.apiservers) {
      await waitFor(`${url} to know the rights of the gateway's user`, async () => {
        const review = await this.request(path, { server: url, method: 'POST', user, body })
        return review.json().status?.allowed === true
      })
    }
  }

  /** Until it exists no pod can be created. */
  #waitForDefaultServiceAccount(): Promise<unknown> {
    return waitFor('the default service account', async () => {
      return (await this.request('/api/v1/namespaces/default/serviceaccounts/default')).status === 200
    })
  }

  async #isReady(node: string): Promise<boolean> {
    const { status, spec } = (await this.request(`/api/v1/nodes/${node}`)).json()
    const conditions: { type: string; status: string }[] = status.conditions ?? []
    // Every node is born with the not-ready taint; the controller manager, where there is one, takes it away.
    const tainted = this.#components.has('kube-controller-manager') && (spec.taints ?? []).length > 0
    return conditions.some(({ type, status }) => type === 'Ready' && status === 'True') && !tainted
  }
}

function nodeObject(name: string): object {
  const resources = { cpu: '64', memory: '256Gi', pods: '110' }
  return {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name, labels: { 'kubernetes.io/hostname': name, type: 'kwok' } },
    status: { allocatable: resources, capacity: resources },
  }
}
