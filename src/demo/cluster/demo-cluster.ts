// DEMO ONLY. A small Kubernetes cluster inside this process, for `portcullis demo` and its tests: enough of a
// kube-apiserver that kubectl is content, no etcd, no kubelets, everything in memory. It is not part of the gateway; the
// gateway's own tests run on real clusters.

import type { UserInfo } from '../../api/kube/user.ts'
import type { KeyPair } from '../../io/pki/pki.ts'
import type { ClusterState } from './call.ts'
import { startLife } from './life.ts'
import { addSampleData, type SampleSize } from './sample-data.ts'
import { type Replica, startReplica } from './server.ts'
import { Store } from './store.ts'

export interface DemoClusterOptions {
  readonly name: string
  /** How many apiservers share the cluster's objects. */
  readonly replicas: number
  /** PEM; signs the client certificates that the apiservers accept. */
  readonly clientCA: string
  /** For 127.0.0.1. */
  readonly serverKeyPair: KeyPair
  /** Static bearer tokens and their users. */
  readonly tokens: ReadonlyMap<string, UserInfo>
  /** The user that may impersonate and ask for reviews. */
  readonly gatewayUser: string
  /** Default: five nodes, some forty pods. */
  readonly size?: SampleSize
}

export interface DemoCluster {
  readonly name: string
  /** `https://127.0.0.1:PORT`, one for each apiserver; `NAME-1` is the first. */
  readonly urls: readonly string[]
  readonly nodes: readonly string[]
  /** Ends one apiserver, as a crash would: every connection breaks. */
  kill(replica: number): Promise<void>
  stop(): Promise<void>
}

const DEFAULT_SIZE: SampleSize = { nodes: 5, scale: 1 }

export async function startDemoCluster(options: DemoClusterOptions): Promise<DemoCluster> {
  const { name, gatewayUser, tokens, clientCA, serverKeyPair: serving } = options
  const state: ClusterState = { name, store: new Store(), gatewayUser, tokens }
  const size = options.size ?? DEFAULT_SIZE
  addSampleData(state, size)
  const stopLife = startLife(state)
  const replicas: Replica[] = []
  for (let i = 1; i <= options.replicas; i++) {
    replicas.push(await startReplica(state, `${name}-${i}`, { clientCA, serving }))
  }
  return {
    name,
    urls: replicas.map(({ port }) => `https://127.0.0.1:${port}`),
    nodes: Array.from({ length: size.nodes }, (_, i) => `${name}-node-${i + 1}`),
    async kill(replica) {
      await replicas[replica]?.stop()
    },
    async stop() {
      stopLife()
      await Promise.all(replicas.map((replica) => replica.stop()))
    },
  }
}
