// The protection webhook (--protection-listen): wires it to the ledger, the cells and their clients, for deletions that bypass the gateway, and opens its port.

import { X509Certificate } from 'node:crypto'
import { join } from 'node:path'
import type { RevocationCheck } from '../../apiserver/access/revoked-credentials.ts'
import { createWebhookAuthenticator, type WebhookAuthenticator } from '../../apiserver/webhooks/webhook-callers.ts'
import type { PortAdmission } from '../../gateway/io/listener/connections.ts'
import { controlPaths } from '../../gateway/io/listener/control-paths.ts'
import { hostsOfPort, openRenewedPort, type RenewedPort } from '../../gateway/io/listener/renewed-port.ts'
import { DEFAULT_TLS_POLICY, type TlsPolicy, tlsPolicy } from '../../gateway/io/listener/tls-policy.ts'
import type { JsonObject } from '../../kit/api/json/json-object.ts'
import type { Clock, Logger } from '../../kit/api/ports.ts'
import type { RequestHandler } from '../../kit/api/stream.ts'
import { UserError } from '../../kit/api/validation/field-errors.ts'
import type { ListenAddress } from '../../kit/core/listen-address.ts'
import { PODS } from '../../kube/api/kinds/foreign-kinds.ts'
import type { ObjectClient } from '../../kube/api/object-client.ts'
import { isMissing } from '../../kube/api/status.ts'
import { caBundleError, certificatesOf, isIssuedByOneOf } from '../../pki/io/ca-bundle.ts'
import { ensureControlPki, readControlTokenKey } from '../../pki/io/control-pki.ts'
import { createTokenVerifier } from '../../pki/io/control-tokens.ts'
import { isIssuedBy, issueServingCertificate, type KeyPair } from '../../pki/io/pki.ts'
import { keyPairFiles, readKeyPair, requireFiles, writeKeyPair } from '../../pki/io/pki-files.ts'
import { createWebhookTokens } from '../../pki/io/webhook-tokens.ts'
import type { OwnCertificate } from '../../process/certificates/own-certificates.ts'
import type { Config } from '../../process/config/config.ts'
import type { ProtectionLedger } from '../controllers/ledger/ledger.ts'
import { createProtectionWebhook, type ProtectionWebhookDeps } from '../webhooks/webhook.ts'
import type { ProtectionCells } from './cells.ts'

export interface WebhookDeps {
  readonly listen: ListenAddress
  readonly config: Config
  readonly ledger: ProtectionLedger
  readonly cells: ProtectionCells
  /** undefined = no list of revoked credentials. */
  readonly revoked: RevocationCheck | undefined
  /** Admission of clients, shared with other ports. Default: limits of this port alone. */
  readonly admission?: PortAdmission
  readonly clock: Clock
  readonly log: Logger
  readonly onReview: NonNullable<ProtectionWebhookDeps['onReview']>
}

/** Does not open the port yet. @throws {UserError} if its certificate or its CA is unusable */
export function createWebhook(deps: WebhookDeps): {
  readonly port: ProtectionPort
  readonly handler: RequestHandler
} {
  const { listen, config, ledger, cells, revoked, admission, clock, log, onReview } = deps
  const { controlHosts: hosts, dataDir } = config
  const tls = tlsPolicy(config.tlsMinVersion, config.tlsCipherSuites)
  const port = new ProtectionPort({ listen, hosts, dataDir, revoked, tls, admission, log })
  const handler = createProtectionWebhook({
    gate: ledger,
    cell: (id) => {
      const protection = cells.protection(id)
      return protection === undefined ? undefined : { protection }
    },
    getPods: (cell, namespace, name) => podsOfName(cells.clients(cell), namespace, name),
    authenticate: port.authenticate,
    ready: () => ledger.knowsProtectors,
    onReview,
    clock,
    log,
  })
  return { port, handler }
}

/**
 * Pods with one name in the clusters of a cell, each once; several only if these are different clusters.
 * @throws {StatusError} (rejects) NotFound if none has one; any error that kept one from responding
 */
async function podsOfName(
  clients: readonly ObjectClient[],
  namespace: string,
  name: string,
): Promise<readonly JsonObject[]> {
  if (clients.length === 0) throw new Error('there is no such cell')
  const pods: JsonObject[] = []
  let missing: unknown
  for (const answer of await Promise.allSettled(clients.map((client) => client.get(PODS, { namespace, name })))) {
    if (answer.status === 'fulfilled') pods.push(answer.value)
    else if (isMissing(answer.reason, name)) missing = answer.reason
    else throw answer.reason
  }
  if (pods.length === 0) throw missing
  return pods
}

interface ProtectionPortOptions {
  readonly listen: ListenAddress
  /** Names and addresses by which kube-apiservers reach it (--control-host): `portcullis.portcullis-system.svc`. */
  readonly hosts: readonly string[]
  /** --data-dir. */
  readonly dataDir: string
  /** Revoked credentials. Default: none. */
  readonly revoked?: RevocationCheck | undefined
  /** TLS policy for clients. Default: TLS 1.2, Node's suites. */
  readonly tls?: TlsPolicy
  /** Admission of clients, shared with other ports. Default: limits of this port alone. */
  readonly admission?: PortAdmission | undefined
  readonly log: Logger
}

const MS_PER_DAY = 24 * 60 * 60 * 1000
const RENEW_BEFORE_MS = 30 * MS_PER_DAY
/** Deadline of running reviews: as long as any may take. */
const CLOSE_WITHIN_MS = 10_000

/**
 * Its certificate is issued by the control plane's CA in the data directory, even if the objects are files or CRDs of a cluster: kube-apiservers verify it with
 * the webhook's caBundle, and it verifies them by client certificate or token.
 */
export class ProtectionPort {
  readonly #options: ProtectionPortOptions
  readonly #dir: string
  /** For the handler. */
  readonly authenticate: WebhookAuthenticator
  #serving: KeyPair
  #caPem: string
  #open: RenewedPort | undefined

  /**
   * Create it after the control port, which uses the same PKI; without a control port, this one creates the PKI.
   * @throws {UserError}
   */
  constructor(options: ProtectionPortOptions) {
    this.#options = options
    this.#dir = controlPaths(options.dataDir).pki
    if (readKeyPair(this.#dir, 'ca') === undefined) ensureControlPki(this.#dir, this.#hosts())
    const tokenKey = readControlTokenKey(this.#dir)
    const ca = this.#ca()
    this.#caPem = ca.certPem
    this.authenticate = createWebhookAuthenticator({
      clientCA: () => this.#caPem,
      tokens: createTokenVerifier(tokenKey),
      webhookTokens: createWebhookTokens(tokenKey),
      revoked: options.revoked,
      now: Date.now,
    })
    this.#serving = this.#currentServing(ca)
  }

  /** 0 = not open. */
  get port(): number {
    return this.#open?.port ?? 0
  }

  /** PEM, for caBundle. */
  get caPem(): string {
    return this.#caPem
  }

  get certificates(): readonly OwnCertificate[] {
    return [
      { name: 'protection-serving', pem: this.#serving.certPem },
      { name: 'protection-ca', pem: this.#caPem },
    ]
  }

  /** Whether the PKI files' current content is in force. */
  get reloads(): ReadonlyMap<string, boolean> {
    return new Map(this.#open === undefined ? [] : [['protection-pki', this.#open.problem === '']])
  }

  /** @throws {UserError} if the port cannot be opened */
  async open(handler: RequestHandler): Promise<void> {
    const { listen, log } = this.#options
    const [pair, caFiles] = [keyPairFiles(this.#dir, 'tls'), keyPairFiles(this.#dir, 'ca')]
    let next = { serving: this.#serving, caPem: this.#caPem }
    const certificates = () => {
      requireFiles(caFiles)
      const ca = this.#ca()
      const { validTo, validToDate } = new X509Certificate(ca.certPem)
      if (ca.certPem !== this.#caPem && validToDate.getTime() <= Date.now()) {
        throw new UserError(`${caFiles[0]} expired on ${validTo}`, 'put a CA there that has not')
      }
      next = { serving: this.#currentServing(ca, this.#serving), caPem: ca.certPem }
      const { certPem: cert, keyPem: key } = next.serving
      return { serving: { cert, key }, clientCA: next.caPem }
    }
    const onInForce = () => {
      this.#serving = next.serving
      this.#caPem = next.caPem
    }
    this.#open = await openRenewedPort({
      listen,
      flag: '--protection-listen',
      tls: this.#options.tls ?? DEFAULT_TLS_POLICY,
      certificates,
      onInForce,
      files: [...pair, ...caFiles],
      handler,
      admission: this.#options.admission,
      log,
    })
  }

  async close(): Promise<void> {
    await this.#open?.close(CLOSE_WITHIN_MS)
    this.#open = undefined
  }

  /**
   * A certificate with which the operator replaced the control plane's; otherwise one from our CA, which need not be stored: clients only verify it
   * through the CA.
   */
  #currentServing(ca: KeyPair, last?: KeyPair): KeyPair {
    const file = readKeyPair(this.#dir, 'tls')
    const hosts = this.#hosts()
    if (file !== undefined && !isIssuedBy(file, ca)) {
      if (!isIssuedByOneOf(file, [...certificatesOf(ca.certPem), ...certificatesOf(this.#caPem)])) return file
      // Issued by a former CA of ours: if kept, it would be taken for the operator's once that CA is gone.
      const pair = issueServingCertificate(ca, hosts)
      writeKeyPair(this.#dir, 'tls', pair)
      return pair
    }
    if (last !== undefined && isIssuedBy(last, ca) && !endsSoon(last)) return last
    return issueServingCertificate(ca, hosts)
  }

  #ca(): KeyPair {
    const ca = readKeyPair(this.#dir, 'ca')
    const problem = ca === undefined ? '' : caBundleError(ca.certPem)
    if (problem !== '') throw new UserError(`${join(this.#dir, 'ca.crt')} ${problem}`, 'put the right file there')
    if (ca !== undefined) return ca
    throw new UserError(`there is no CA of the control plane in ${this.#dir}`, 'start again to create one')
  }

  #hosts(): readonly string[] {
    return hostsOfPort(this.#options.hosts, this.#options.listen)
  }
}

function endsSoon({ certPem }: KeyPair): boolean {
  return new X509Certificate(certPem).validToDate.getTime() - Date.now() <= RENEW_BEFORE_MS
}
