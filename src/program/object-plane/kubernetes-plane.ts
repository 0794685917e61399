// Objects as CRDs of a cluster, and the webhook that checks them there.

import type { AdminLogin } from '../../admin/app/access/admin-access.ts'
import { ClusterIdentity } from '../../admin/app/access/cluster-identity.ts'
import { reviewedLogin } from '../../admin/app/access/objects-login.ts'
import { accessReviews, type PostReview } from '../../admin/app/access/review-access.ts'
import type { CountLimited } from '../../apiserver/http/port-memory.ts'
import { createWebhookHandler } from '../../apiserver/webhooks/webhook.ts'
import { createWebhookAuthenticator } from '../../apiserver/webhooks/webhook-callers.ts'
import { ENDED_SESSIONS } from '../../gateway/api/ended-session-kind.ts'
import type { ResourceSource, SourceChange } from '../../gateway/api/resource-source.ts'
import type { UpstreamCluster } from '../../gateway/api/upstream-cluster/upstream-cluster.ts'
import { UPSTREAM_CLUSTERS } from '../../gateway/api/upstream-cluster-kind.ts'
import { objectsOf } from '../../gateway/io/last-good/format.ts'
import { keepFollowed, keptClusters } from '../../gateway/io/last-good/kept-follow.ts'
import type { PortAdmission } from '../../gateway/io/listener/connections.ts'
import { SecretsAtWrite } from '../../gateway/io/secrets/references-at-write.ts'
import { createObjectsSource } from '../../gateway/io/sources/objects/objects-source.ts'
import type { JsonObject } from '../../kit/api/json/json-object.ts'
import type { Logger } from '../../kit/api/ports.ts'
import type { LineWriter } from '../../kit/io/logs/line-writer.ts'
import { VERSION } from '../../kit/io/program/build.ts'
import { systemClock } from '../../kit/io/world/clock.ts'
import type { ObjectClient } from '../../kube/api/object-client.ts'
import type { ResourceKind } from '../../kube/api/resource-kind.ts'
import { createKubeClient, type KubeClient } from '../../kube/io/client.ts'
import type { KubeCallEvents } from '../../kube/io/client-events.ts'
import { CrdInstallation } from '../../kube/io/install-crds.ts'
import { sharedFollow } from '../../kube/io/shared-follow.ts'
import { createTokenVerifier } from '../../pki/io/control-tokens.ts'
import { nodePemChecks } from '../../pki/io/pem-checks.ts'
import { createWebhookTokens } from '../../pki/io/webhook-tokens.ts'
import type { FailureCounts } from '../../process/api/failure-counts.ts'
import type { OwnCertificate } from '../../process/certificates/own-certificates.ts'
import { type FollowedPki, followSharedPki, sharedCAs } from '../../process/certificates/shared-pki.ts'
import type { Config } from '../../process/config/config.ts'
import { CUSTOM_KINDS, crdOf, KEPT_KINDS, SHARED_KINDS } from '../api/scheme.ts'
import type { LastGoodStates } from '../last-good/states.ts'
import type { OverlaySource, SourceOverlay } from '../subjects/subject.ts'
import { ControlPort } from './control-port.ts'
import type { ObjectPlane } from './object-plane.ts'
import { kindsOf, sourceOptions } from './plane-options.ts'

/** Claims are cached by object identity, so every review must receive the same object. */
const jsonObjects = new WeakMap<UpstreamCluster, JsonObject>()

function known(cluster: UpstreamCluster): JsonObject {
  let object = jsonObjects.get(cluster)
  if (object === undefined) {
    object = { ...cluster }
    jsonObjects.set(cluster, object)
  }
  return object
}

export class KubernetesPlane implements ObjectPlane {
  readonly name = 'objects'
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
  /** undefined = the objects come into force as they are. */
  readonly #overlay: SourceOverlay | undefined
  #onLimited: CountLimited | undefined
  #installing: CrdInstallation | undefined
  #sharedPki: FollowedPki | undefined

  constructor(
    config: Config,
    log: Logger,
    calls: KubeCallEvents,
    audit: LineWriter | undefined,
    lastGood: LastGoodStates,
    overlay: OverlaySource | undefined,
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
    const scaling = keepFollowed({
      // The source and three controllers follow UpstreamClusters, the ledger and the generator PodProtectors.
      client: { ...this.#kube, follow: sharedFollow(this.#kube, [UPSTREAM_CLUSTERS], log, SHARED_KINDS) },
      keeper: lastGood.keeper('scale', of),
      kinds: KEPT_KINDS,
      waitMs,
    })
    // In a state of its own: a state is current once all of its kinds are, and these are followed only if an issuer tells of logouts.
    this.client = keepFollowed({
      client: scaling,
      keeper: lastGood.keeper('logouts', of),
      kinds: [ENDED_SESSIONS],
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
        onCurrent: (current) => this.#overlay?.current(current),
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
    this.#overlay = overlay?.({
      source: claiming,
      client,
      dataDir,
      clock: systemClock,
      log,
      audit: (line) => audit?.write(line),
    })
    this.source = this.#overlay ?? claiming
  }

  applied(change: SourceChange): void {
    this.#overlay?.applied(change)
  }

  switchedHere(cluster: string): ReturnType<SourceOverlay['switchedHere']> {
    return this.#overlay?.switchedHere(cluster)
  }

  guardPort(admission: PortAdmission, _failures: FailureCounts, onLimited: CountLimited): void {
    this.#control.admission = admission
    this.#onLimited = onLimited
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

  async start(): Promise<void> {
    const { client } = this
    const log = this.#log
    // Only useful if there is a login.
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
    const onLimited: CountLimited = (limit, known) => this.#onLimited?.(limit, known)
    const deps = { authenticate, kinds, kindsFor, pem: nodePemChecks, clusters, onLimited, log }
    await this.#control.open(createWebhookHandler(deps))
  }

  async stop(): Promise<void> {
    this.#identity.stop()
    this.#installing?.stop()
    this.#sharedPki?.stop()
    await this.#control.close()
    await this.#kube.close()
  }
}
