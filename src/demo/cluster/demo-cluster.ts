// A small Kubernetes cluster inside this process, for `portcullis demo` and its tests: the gateway's API server with
// more kinds and a store in memory, and a timer instead of controllers and kubelets. It is not part of the gateway; the
// gateway's own tests run on real clusters.

import { randomUUID } from 'node:crypto'
import process from 'node:process'
import { createAuthenticator } from '../../apiserver/access/authenticate.ts'
import { openSqliteStore } from '../../apiserver/io/store/store.ts'
import { metaText } from '../../apiserver/objects/object-metadata.ts'
import { Registry } from '../../apiserver/registry/registry.ts'
import { createControlHandler } from '../../apiserver/server.ts'
import { listenControl } from '../../gateway/io/listener/control-listener.ts'
import { createLogger } from '../../kit/io/logs/log.ts'
import { VERSION } from '../../kit/io/program/build.ts'
import { EVENTS } from '../../kube/api/kinds/event-kind.ts'
import { LEASES } from '../../kube/api/kinds/lease-kind.ts'
import { NAMESPACES } from '../../kube/api/kinds/namespace-kind.ts'
import { SECRETS } from '../../kube/api/kinds/secret-kind.ts'
import type { ResourceKind } from '../../kube/api/resource-kind.ts'
import type { UserInfo } from '../../kube/api/user.ts'
import { nodePemChecks } from '../../pki/io/pem-checks.ts'
import type { KeyPair } from '../../pki/io/pki.ts'
import { DEMO_CONFIG_MAPS, DEMO_NODES, SERVICE_ACCOUNTS, SERVICES } from '../kinds/core-kinds.ts'
import { DEMO_MESSAGES } from '../kinds/messages.ts'
import { DEMO_PODS, isEnding } from '../kinds/pod-kind.ts'
import { DEMO_DEPLOYMENTS, DEMO_REPLICA_SETS } from '../kinds/workload-kinds.ts'
import { demoAuthorizer, demoReviews } from './access.ts'
import { stepPod, watchNode } from './kubelets.ts'
import { DemoObjects } from './objects.ts'
import { addSampleData, type SampleSize } from './sample-data.ts'
import { collectOrphans, stepDeployment, stepReplicaSet } from './workloads.ts'

interface DemoClusterOptions {
  readonly name: string
  /** How many apiservers share the cluster's objects. */
  readonly replicas: number
  /** PEM; signs the client certificates that the apiservers accept. */
  readonly clientCA: string
  /** For 127.0.0.1. */
  readonly serverKeyPair: KeyPair
  /** Static bearer tokens and their users. */
  readonly tokens: ReadonlyMap<string, UserInfo>
  /** The user that may impersonate and create reviews. */
  readonly gatewayUser: string
  /** Default: five nodes, some forty pods. */
  readonly size?: SampleSize
}

export interface DemoCluster {
  readonly name: string
  /** `https://127.0.0.1:PORT`, one per apiserver; `NAME-1` is the first. */
  readonly urls: readonly string[]
  readonly nodes: readonly string[]
  /** Ends one apiserver, like a crash: every connection breaks. */
  kill(replica: number): void
  stop(): void
}

const DEFAULT_SIZE: SampleSize = { nodes: 5, scale: 1 }
/** Initial age of the sample objects. */
const AGE_MS = 3_600_000

export async function startDemoCluster(options: DemoClusterOptions): Promise<DemoCluster> {
  const { name, gatewayUser, tokens, clientCA, serverKeyPair } = options
  const size = options.size ?? DEFAULT_SIZE
  const store = openSqliteStore({ file: ':memory:', key: undefined })
  let agoMs = AGE_MS
  const clock = { now: () => Date.now() - agoMs, uuid: randomUUID, random: Math.random }
  const registry = new Registry({ ...clock, store, kinds: DEMO_SCHEME, pem: nodePemChecks })
  const objects = new DemoObjects(registry)
  addSampleData(objects, name, size)
  settle(objects)
  agoMs = 0
  const stopLife = startLife(objects)
  const authorize = demoAuthorizer(gatewayUser)
  const userOf = (token: string): UserInfo | undefined => tokens.get(token)
  const handlerOf = (replica: string): ReturnType<typeof createControlHandler> =>
    createControlHandler({
      ...clock,
      registry,
      authorize,
      authenticate: createAuthenticator({ clientCA: () => clientCA, tokens: { verify: userOf }, now: Date.now }),
      reviews: demoReviews(authorize, userOf),
      messages: DEMO_MESSAGES,
      shownTo: () => (_kind, object) => object,
      version: VERSION,
      checks: [],
      log: createLogger({ level: 'error', destination: { write: (line) => void process.stderr.write(line) } }),
      headers: ['x-demo-apiserver', replica],
    })
  const serving = { cert: serverKeyPair.certPem, key: serverKeyPair.keyPem }
  const replicas: { port: number; close(): void }[] = []
  for (let i = 1; i <= options.replicas; i++) {
    const handler = handlerOf(`${name}-${i}`)
    replicas.push(await listenControl({ host: '127.0.0.1', port: 0, serving, clientCA, handler }))
  }
  return {
    name,
    urls: replicas.map(({ port }) => `https://127.0.0.1:${port}`),
    nodes: Array.from({ length: size.nodes }, (_, i) => `${name}-node-${i + 1}`),
    kill: (replica) => replicas[replica]?.close(),
    stop() {
      stopLife()
      for (const replica of replicas) replica.close()
      store.close()
    },
  }
}

// Drives a demo cluster: reconciles workloads, starts and ends pods, and marks a node NotReady if its lease is not renewed
// for a while (the case for the degrade switch).
const STEP_MS = 500

/** Brings everything to Running in as few writes as possible, so that the demo starts fast. */
function settle(objects: DemoObjects): void {
  addServiceAccounts(objects)
  for (const one of objects.list(DEMO_DEPLOYMENTS)) stepDeployment(objects, one)
  for (const one of objects.list(DEMO_REPLICA_SETS)) stepReplicaSet(objects, one, true)
  for (const one of objects.list(DEMO_PODS)) stepPod(objects, one, true)
  for (const one of objects.list(DEMO_REPLICA_SETS)) stepReplicaSet(objects, one, true)
  for (const one of objects.list(DEMO_DEPLOYMENTS)) stepDeployment(objects, one)
}

/** Returns the function that stops it. */
function startLife(objects: DemoObjects): () => void {
  const timer = setInterval(() => {
    step(objects)
    for (const node of objects.list(DEMO_NODES)) watchNode(objects, node)
  }, STEP_MS)
  timer.unref()
  return () => clearInterval(timer)
}

function step(objects: DemoObjects): void {
  addServiceAccounts(objects)
  collectOrphans(objects)
  for (const one of objects.list(DEMO_DEPLOYMENTS)) objects.attempt(() => stepDeployment(objects, one))
  for (const one of objects.list(DEMO_REPLICA_SETS)) objects.attempt(() => stepReplicaSet(objects, one, false))
  for (const one of objects.list(DEMO_PODS)) objects.attempt(() => stepPod(objects, one, false))
}

/** Every namespace has its `default` service account: without it no pod starts. */
function addServiceAccounts(objects: DemoObjects): void {
  for (const namespace of objects.list(NAMESPACES)) {
    const name = metaText(namespace, 'name')
    if (isEnding(namespace) || objects.get(SERVICE_ACCOUNTS, name, 'default') !== undefined) continue
    const account = { metadata: { name: 'default', namespace: name } }
    objects.create(SERVICE_ACCOUNTS, account, 'kube-controller-manager')
  }
}

// All kinds served by the demo's clusters.
const DEMO_SCHEME: readonly ResourceKind[] = [
  DEMO_PODS,
  DEMO_NODES,
  NAMESPACES,
  SERVICES,
  DEMO_CONFIG_MAPS,
  SECRETS,
  SERVICE_ACCOUNTS,
  EVENTS,
  DEMO_DEPLOYMENTS,
  DEMO_REPLICA_SETS,
  LEASES,
]
