// Objects in the embedded API server, in this process.

import { randomUUID } from 'node:crypto'
import type { AdminLogin } from '../../admin/app/access/admin-access.ts'
import { embeddedLogin } from '../../admin/app/access/objects-login.ts'
import { createAuthenticationWait, createAuthenticator } from '../../apiserver/access/authenticate.ts'
import { createAuthorizer, roleBindings } from '../../apiserver/access/authorize.ts'
import { shownTo } from '../../apiserver/access/redaction.ts'
import { type RevocationCheck, RevokedCredentials } from '../../apiserver/access/revoked-credentials.ts'
import type { ObjectStore } from '../../apiserver/api/object-store.ts'
import type { CountLimited } from '../../apiserver/http/port-memory.ts'
import { openKeyedStore } from '../../apiserver/io/store/keyed-store.ts'
import { createInProcessClient } from '../../apiserver/registry/in-process-client.ts'
import { Registry } from '../../apiserver/registry/registry.ts'
import { selfReviews } from '../../apiserver/self-reviews.ts'
import { type ControlHandler, createControlHandler } from '../../apiserver/server.ts'
import type { ResourceSource } from '../../gateway/api/resource-source.ts'
import type { PortAdmission } from '../../gateway/io/listener/connections.ts'
import { controlPaths } from '../../gateway/io/listener/control-paths.ts'
import type { SecretAtWrite } from '../../gateway/io/secrets/references-at-write.ts'
import { createObjectsSource } from '../../gateway/io/sources/objects/objects-source.ts'
import type { Exposition } from '../../gateway/metrics/exposition.ts'
import type { Logger } from '../../kit/api/ports.ts'
import { UserError } from '../../kit/api/validation/field-errors.ts'
import type { FileLock } from '../../kit/io/locks/file-lock.ts'
import type { LineWriter } from '../../kit/io/logs/line-writer.ts'
import { VERSION } from '../../kit/io/program/build.ts'
import { NAMESPACES } from '../../kube/api/kinds/namespace-kind.ts'
import { SECRETS } from '../../kube/api/kinds/secret-kind.ts'
import type { ObjectClient } from '../../kube/api/object-client.ts'
import { OWN_NAMESPACE } from '../../kube/api/own-names.ts'
import { resourceName } from '../../kube/api/resource-kind.ts'
import { StatusError } from '../../kube/api/status.ts'
import { createTokenVerifier } from '../../pki/io/control-tokens.ts'
import { nodePemChecks } from '../../pki/io/pem-checks.ts'
import { replaceFile } from '../../pki/io/pki-files.ts'
import type { FailureCounts } from '../../process/api/failure-counts.ts'
import type { OwnCertificate } from '../../process/certificates/own-certificates.ts'
import type { Config } from '../../process/config/config.ts'
import { type ControlOidc, createControlOidc } from './control-oidc.ts'
import { ControlPort } from './control-port.ts'
import type { ObjectPlane } from './object-plane.ts'
import { kindRoles, kindsOf, sourceOptions } from './plane-options.ts'

export class EmbeddedPlane implements ObjectPlane {
  readonly name = 'objects'
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
  #failures: FailureCounts | undefined
  #onLimited: CountLimited | undefined
  #stopped = false

  constructor(config: Config, log: Logger, audit: LineWriter | undefined, lock?: FileLock) {
    const paths = controlPaths(config.dataDir)
    this.#oidc = createControlOidc(config, log)
    const keyFile = config.storeKeyFile === '' ? paths.storeKey : config.storeKeyFile
    // Before the PKI: otherwise replaced files would take effect in the process that has the store open.
    this.#store = openKeyedStore({ file: paths.store, keyFile, lock })
    this.#control = createControlPort(config, log, this.#store)
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
    const bindings = roleBindings(config.controlAdmins, config.controlViewers, kindRoles(config))
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
      failures: {
        failed: (source, credential) => this.#failures?.failed(source, credential),
        waitSeconds: (source) => this.#failures?.waitSeconds(source) ?? 0,
      },
      onLimited: (limit, known) => this.#onLimited?.(limit, known),
      audit: audit && ((line) => audit.write(line)),
      log,
    })
  }

  guardPort(admission: PortAdmission, failures: FailureCounts, onLimited: CountLimited): void {
    this.#failures = failures
    this.#onLimited = onLimited
    this.#control.admission = admission
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

  exposeMetrics(into: Exposition): void {
    this.#oidc?.exposeMetrics(into)
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

function createControlPort(config: Config, log: Logger, store: ObjectStore): ControlPort {
  try {
    return new ControlPort(config, log)
  } catch (error) {
    store.close()
    throw error
  }
}

/** Without it no client is admitted. */
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

/** A real read: a failed disk does not respond. */
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
