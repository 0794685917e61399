// Where the objects live, by --source: files, the embedded API server, or CRDs of a cluster. Each has a source of clusters;
// the last two also a client, with which statuses are written.

import { randomUUID } from 'node:crypto'
import { CUSTOM_KINDS, crdOf } from '../../api/kinds/crd.ts'
import {
  NAMESPACES,
  SCALE_DOWN_POLICIES,
  SCALE_UP_GUARDS,
  SCHEME,
  SECRETS,
  UPSTREAM_CLUSTERS,
} from '../../api/kinds/scheme.ts'
import { type ResolvedReferences, upstreamClusterKind } from '../../api/kinds/upstream-cluster-kind.ts'
import type { JsonObject } from '../../api/kube/json-object.ts'
import { OWN_NAMESPACE } from '../../api/kube/own-names.ts'
import { StatusError } from '../../api/kube/status.ts'
import type { ObjectClient } from '../../api/ports/object-client.ts'
import type { ObjectStore } from '../../api/ports/object-store.ts'
import type { Logger, ResourceSource, SourceChange } from '../../api/ports/ports.ts'
import { type ResourceKind, resourceName } from '../../api/ports/resource-kind.ts'
import type { UpstreamCluster } from '../../api/upstream-cluster/upstream-cluster.ts'
import { UserError } from '../../api/validation/field-errors.ts'
import { createAuthenticationWait, createAuthenticator } from '../../apiserver/access/authenticate.ts'
import { createAuthorizer, roleBindings } from '../../apiserver/access/authorize.ts'
import { shownTo } from '../../apiserver/access/redaction.ts'
import { type RevocationCheck, RevokedCredentials } from '../../apiserver/access/revoked-credentials.ts'
import { createInProcessClient } from '../../apiserver/registry/in-process-client.ts'
import { Registry } from '../../apiserver/registry/registry.ts'
import { selfReviews } from '../../apiserver/self-reviews.ts'
import { type ControlHandler, createControlHandler } from '../../apiserver/server.ts'
import { SwitchedSource } from '../../controllers/local-switches/switched-source.ts'
import { createKubeClient, type KubeClient } from '../../io/kube/client.ts'
import type { KubeCallEvents } from '../../io/kube/client-events.ts'
import type { KubeAccess } from '../../io/kube/config-access.ts'
import { keepFollowed } from '../../io/last-good/kept-follow.ts'
import { controlPaths } from '../../io/listener/control-paths.ts'
import type { LocalSwitch } from '../../io/local-switches/switch-file.ts'
import type { LineWriter } from '../../io/logs/line-writer.ts'
import { localSwitchLine } from '../../io/logs/local-switch-audit.ts'
import { createTokenVerifier } from '../../io/pki/control-tokens.ts'
import { nodePemChecks } from '../../io/pki/pem-checks.ts'
import { replaceFile } from '../../io/pki/pki-files.ts'
import { createWebhookTokens } from '../../io/pki/webhook-tokens.ts'
import { VERSION } from '../../io/program/build.ts'
import { resolveAtWrite, type SecretAtWrite } from '../../io/secrets/references-at-write.ts'
import { SecretsAtWrite } from '../../io/secrets/secrets-at-write.ts'
import { createFilesSource } from '../../io/sources/files/source.ts'
import { keptClusters } from '../../io/sources/objects/kept-clusters.ts'
import { createObjectsSource, type ObjectsSourceOptions } from '../../io/sources/objects/objects-source.ts'
import { openKeyedStore } from '../../io/store/keyed-store.ts'
import { systemClock } from '../../io/world/clock.ts'
import { createWebhookAuthenticator } from '../../webhooks/protection-webhook-callers.ts'
import { createWebhookHandler } from '../../webhooks/webhook.ts'
import type { AdminLogin } from '../access/admin-access.ts'
import { ClusterIdentity } from '../access/cluster-identity.ts'
import { embeddedLogin, reviewedLogin } from '../access/objects-login.ts'
import { accessReviews, type PostReview } from '../access/review-access.ts'
import type { OwnCertificate } from '../certificates/own-certificates.ts'
import { sharedCAs } from '../certificates/shared-pki.ts'
import { type FollowedPki, followSharedPki } from '../certificates/shared-pki-follow.ts'
import type { Config } from '../config/config.ts'
import { CrdInstallation } from '../last-good/crd-installation.ts'
import { type LastGoodStates, objectsOf } from '../last-good/states.ts'
import { type ControlOidc, createControlOidc } from './control-oidc.ts'
import { ControlPort } from './control-port.ts'

export interface ObjectPlane {
  readonly source: ResourceSource
  /** undefined = objects are files and have no status. */
  readonly client: ObjectClient | undefined
  /** URL of the API server behind the client; '' = it is in this process, or there is none. */
  readonly server: string
  /** Of the embedded API server, or of the webhook; 0 = there is none, or it is not open. */
  readonly port: number
  /** Credentials of the first administrator of the embedded API server; '' = there is none. */
  readonly adminKubeconfig: string
  /** As they are now. */
  readonly certificates: readonly OwnCertificate[]
  /** Of files that are read again when they change: whether their content is in force. */
  readonly reloads: ReadonlyMap<string, boolean>
  /** Sends a review to the API server that holds the objects; undefined = it is not a cluster's. */
  readonly review: PostReview | undefined
  /** How the API server of the objects knows who uses the admin listener; undefined = there is none. */
  readonly adminLogin: AdminLogin | undefined
  /** Who this replica is for others: its credential at the API server of the objects; undefined = it has none. */
  readonly peerAccess: (() => Promise<KubeAccess>) | undefined
  /** The credentials revoked for the embedded API server; undefined = there is none. */
  readonly revoked: RevocationCheck | undefined
  /** Metrics of its own, in the Prometheus text format. */
  text(): string
  /** What the source has delivered is in force in all threads. */
  applied?(change: SourceChange): void
  /** Before the source starts. @throws {UserError} */
  start(): Promise<void>
  /** To be called when nothing uses the source and the client any more. */
  stop(): Promise<void>
}

/**
 * @param lastGood where what is in force is kept for a start without the API server
 * @param audit where lines of the embedded API server's audit log go; undefined = it has none
 * @param calls notified of calls to the API server that holds the objects
 * @throws {UserError} for what the operator can fix
 */
export function createObjectPlane(
  config: Config,
  log: Logger,
  calls: KubeCallEvents,
  audit: LineWriter | undefined,
  lastGood: LastGoodStates,
): ObjectPlane {
  switch (config.source) {
    case 'files':
      return filesPlane(config, log)
    case 'embedded':
      return new EmbeddedPlane(config, log, audit)
    case 'kubernetes':
      return new KubernetesPlane(config, log, calls, audit, lastGood)
  }
}

/** What this gateway can do with an object. */
function checksOf({ redisUrl }: Config): { readonly globalLimits: boolean } {
  return { globalLimits: redisUrl !== '' }
}

function sourceOptions(config: Config, log: Logger): Omit<ObjectsSourceOptions, 'client'> {
  return { pem: nodePemChecks, log, checks: checksOf(config), secretNamespaces: config.secretNamespaces }
}

/** @param secretOf resolves the references of an object at a write */
function kindsOf(
  config: Config,
  secretOf: (namespace: string, name: string) => SecretAtWrite,
): readonly ResourceKind[] {
  const resolve = (object: JsonObject): ResolvedReferences => resolveAtWrite(object, secretOf, config.secretNamespaces)
  const clusters = upstreamClusterKind({ ...checksOf(config), resolve })
  return SCHEME.map((kind) => (kind === UPSTREAM_CLUSTERS ? clusters : kind))
}

function filesPlane(config: Config, log: Logger): ObjectPlane {
  return planeWithoutApi(
    createFilesSource({
      dir: config.configDir,
      pem: nodePemChecks,
      log,
      checks: { ...checksOf(config), recovery: false },
    }),
  )
}

/** Of a source that no API server is behind. */
export function planeWithoutApi(source: ResourceSource): ObjectPlane {
  const nothing = (): Promise<void> => Promise.resolve()
  return {
    source,
    client: undefined,
    server: '',
    port: 0,
    adminKubeconfig: '',
    certificates: [],
    reloads: new Map(),
    review: undefined,
    adminLogin: undefined,
    peerAccess: undefined,
    revoked: undefined,
    text: () => '',
    start: nothing,
    stop: nothing,
  }
}

class EmbeddedPlane implements ObjectPlane {
  readonly source: ResourceSource
  readonly client: ObjectClient
  readonly server = ''
  readonly review = undefined
  readonly #control: ControlPort
  readonly #store: ObjectStore
  readonly #handler: ControlHandler
  readonly #addressFile: string
  readonly #oidc: ControlOidc | undefined
  readonly revoked: RevocationCheck
  readonly adminLogin: AdminLogin
  readonly peerAccess = undefined
  #stopped = false

  constructor(config: Config, log: Logger, audit: LineWriter | undefined) {
    const paths = controlPaths(config.dataDir)
    this.#oidc = createControlOidc(config, log)
    this.#control = new ControlPort(config, log)
    const keyFile = config.storeKeyFile === '' ? paths.storeKey : config.storeKeyFile
    this.#store = openKeyedStore({ file: paths.store, keyFile })
    const secretOf = (namespace: string, name: string): SecretAtWrite =>
      this.#store.get({ resource: resourceName(SECRETS), namespace, name })?.object
    const parts = { now: Date.now, uuid: randomUUID, random: Math.random }
    const kinds = kindsOf(config, secretOf)
    const registry = new Registry({ ...parts, store: this.#store, kinds, pem: nodePemChecks })
    this.client = createInProcessClient(registry)
    this.source = createObjectsSource({ ...sourceOptions(config, log), client: this.client })
    const { tokenKey } = this.#control.pki
    this.#addressFile = paths.address
    // After the write: a watch that ends must not receive its event.
    const revoked = readRevoked(this.#store, () => queueMicrotask(() => this.#handler.endRefused()))
    this.revoked = revoked.check
    const bindings = roleBindings(config.controlAdmins, config.controlViewers)
    const authenticate = createAuthenticator({
      clientCA: () => this.#control.pki.caPem,
      tokens: createTokenVerifier(tokenKey),
      idTokens: this.#oidc?.tokens,
      revoked: this.revoked,
      now: Date.now,
    })
    const before = this.#oidc && createAuthenticationWait(this.#oidc.tokens, Date.now)
    this.adminLogin = embeddedLogin({
      clientCA: () => this.#control.pki.caPem,
      authenticate,
      before: (head) => before?.(undefined, head),
      bindings,
    })
    this.#handler = createControlHandler({
      ...parts,
      registry,
      reviews: selfReviews(bindings, kinds),
      shownTo: (user) => shownTo(bindings, user),
      version: VERSION,
      checks: [{ name: 'store', isHealthy: () => !this.#stopped && canRead(this.#store) }],
      authenticate,
      ...(before !== undefined && { beforeAuthentication: before }),
      authorize: createAuthorizer(bindings),
      audit: audit && ((line) => audit.write(line)),
      log,
    })
  }

  get port(): number {
    return this.#control.port
  }

  get certificates(): readonly OwnCertificate[] {
    return this.#control.certificates
  }

  get reloads(): ReadonlyMap<string, boolean> {
    return this.#control.reloads
  }

  text(): string {
    return this.#oidc?.text() ?? ''
  }

  get adminKubeconfig(): string {
    return this.#control.pki.adminKubeconfigFile
  }

  async start(): Promise<void> {
    // For the gateway's own Leases and the Secrets of imported clusters.
    await this.client
      .create(NAMESPACES, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: OWN_NAMESPACE } })
      .catch(ignoreExisting)
    this.#oidc?.keys.start()
    await this.#control.open(this.#handler, () => this.#handler.endRefused())
    replaceFile(this.#addressFile, `${this.#control.localUrl}\n`, 0o600)
  }

  async stop(): Promise<void> {
    if (this.#stopped) return
    this.#stopped = true
    this.#oidc?.keys.stop()
    this.#handler.endWatches()
    await this.#control.close()
    this.#store.close()
  }
}

/** Without it nobody is admitted. */
function readRevoked(store: ObjectStore, onChange: () => void): RevokedCredentials {
  try {
    return new RevokedCredentials(store, onChange)
  } catch (error) {
    store.close()
    if (!(error instanceof StatusError)) throw error
    throw new UserError(
      `the list of revoked credentials cannot be read: ${error.message}`,
      'keep a copy of its files first',
    )
  }
}

/** A real read: a disk that is gone does not answer. */
function canRead(store: ObjectStore): boolean {
  try {
    store.get({ resource: resourceName(NAMESPACES), namespace: '', name: 'default' })
    return true
  } catch {
    return false
  }
}

function ignoreExisting(error: unknown): void {
  if (!(error instanceof StatusError && error.reason === 'AlreadyExists')) throw error
}

/** Claims are cached by object identity, so every review must be given the same object. */
const jsonObjects = new WeakMap<UpstreamCluster, JsonObject>()

function known(cluster: UpstreamCluster): JsonObject {
  let object = jsonObjects.get(cluster)
  if (object === undefined) {
    object = { ...cluster }
    jsonObjects.set(cluster, object)
  }
  return object
}

class KubernetesPlane implements ObjectPlane {
  readonly source: ResourceSource
  readonly client: ObjectClient
  readonly server: string
  readonly #kube: KubeClient
  readonly adminKubeconfig = ''
  readonly revoked = undefined
  readonly review: PostReview = (path, body) => this.#kube.review(path, body)
  readonly adminLogin: AdminLogin
  readonly peerAccess: ObjectPlane['peerAccess']
  readonly #identity: ClusterIdentity
  readonly #config: Config
  readonly #log: Logger
  readonly #control: ControlPort
  /** The version that holds the claims; an object that is not in force has none. */
  #inForce: SourceChange['clusters'] = new Map()

  readonly #lastGood: LastGoodStates
  readonly #switched: SwitchedSource
  #installing: CrdInstallation | undefined
  #sharedPki: FollowedPki | undefined

  constructor(
    config: Config,
    log: Logger,
    calls: KubeCallEvents,
    audit: LineWriter | undefined,
    lastGood: LastGoodStates,
  ) {
    this.#config = config
    this.#log = log
    this.#lastGood = lastGood
    this.#control = new ControlPort(config, log)
    const { kubeconfig: kubeconfigFile, context } = config
    this.#kube = createKubeClient({ kubeconfigFile, log, calls, ...(context !== '' && { context }) })
    this.server = this.#kube.server
    const { kubeconfig } = this.#kube
    this.peerAccess = kubeconfig && (() => kubeconfig.access())
    this.#identity = new ClusterIdentity(this.#kube, this.review, log)
    this.adminLogin = reviewedLogin({
      reviews: accessReviews(this.review, () => systemClock.monotonic(), log, 'the admin listener'),
      clientCA: () => this.#identity.clientCA,
      ownUser: () => this.#identity.ownUser,
      now: Date.now,
    })
    const of = objectsOf(this.server, context)
    const waitMs = (): number => lastGood.waitMs
    this.client = keepFollowed({
      client: this.#kube,
      keeper: lastGood.keeper('scale', of),
      kinds: [SCALE_UP_GUARDS, SCALE_DOWN_POLICIES],
      waitMs,
    })
    const keeper = lastGood.keeper('objects', of)
    const source = createObjectsSource({
      ...sourceOptions(config, log),
      client: this.client,
      lastGood: keptClusters({
        keeper,
        waitMs,
        log,
        onCurrent: (current) => this.#switched.current(current),
      }),
    })
    const claiming: ResourceSource = {
      start: (onChange) =>
        source.start((change) => {
          this.#inForce = change.clusters
          onChange(change)
        }),
      stop: () => source.stop(),
    }
    const { client } = this
    const { dataDir } = config
    const onThrown = (local: LocalSwitch, lifted: boolean): void =>
      audit?.write(localSwitchLine(local, lifted, Date.now()))
    this.#switched = new SwitchedSource({ source: claiming, client, dataDir, clock: systemClock, log, onThrown })
    this.source = this.#switched
  }

  applied(change: SourceChange): void {
    this.#switched.applied(change)
  }

  get port(): number {
    return this.#control.port
  }

  get certificates(): readonly OwnCertificate[] {
    const pem = this.#kube.kubeconfig?.clientCertificate ?? ''
    const own: readonly OwnCertificate[] = pem === '' ? [] : [{ name: 'kubeconfig-client', pem }]
    return [...this.#control.certificates, ...own]
  }

  get reloads(): ReadonlyMap<string, boolean> {
    const { kubeconfig } = this.#kube
    const read: [string, boolean][] = kubeconfig === undefined ? [] : [['kubeconfig', kubeconfig.problem === '']]
    return new Map([...this.#control.reloads, ...(this.#sharedPki?.reloads ?? []), ...read])
  }

  text(): string {
    return ''
  }

  async start(): Promise<void> {
    const { client } = this
    const log = this.#log
    // Of use where there is a login.
    if (this.#config.adminTlsCertFile !== '') void this.#identity.start()
    if (this.#config.installCrds) {
      this.#installing = new CrdInstallation({ client, crds: CUSTOM_KINDS.map((kind) => crdOf(kind, VERSION)), log })
      await this.#installing.done(this.#lastGood.exists('objects') ? this.#lastGood.waitMs : undefined)
    }
    const clusters = (): readonly JsonObject[] => [...this.#inForce.values()].map(({ object }) => known(object))
    const { tokenKey } = this.#control.pki
    const authenticate = createWebhookAuthenticator({
      clientCA: () => this.#control.pki.caPem,
      tokens: createTokenVerifier(tokenKey),
      webhookTokens: createWebhookTokens(tokenKey),
      now: Date.now,
    })
    const secrets = new SecretsAtWrite(client)
    const kindsFor = async (object: unknown): Promise<readonly ResourceKind[]> =>
      kindsOf(this.#config, await secrets.read(object))
    const kinds = kindsOf(this.#config, () => 'unknown')
    this.#sharedPki = followSharedPki(this.#kube, sharedCAs(this.#config), log)
    await this.#control.open(createWebhookHandler({ authenticate, kinds, kindsFor, pem: nodePemChecks, clusters, log }))
  }

  async stop(): Promise<void> {
    this.#identity.stop()
    this.#installing?.stop()
    this.#sharedPki?.stop()
    await this.#control.close()
    await this.#kube.close()
  }
}
