// The port of the protection webhook (--protection-listen). Its certificate comes from the control plane's CA in the data directory,
// even where the objects are files or CRDs of a cluster: kube-apiservers verify it by the webhook's caBundle, and it verifies
// them by client certificate or token.

import { X509Certificate } from 'node:crypto'
import type { Logger } from '../../api/ports/ports.ts'
import type { RequestHandler } from '../../api/ports/stream.ts'
import { UserError } from '../../api/validation/field-errors.ts'
import type { RevocationCheck } from '../../apiserver/access/revoked-credentials.ts'
import type { ListenAddress } from '../../core/cluster/listen-address.ts'
import { controlPaths } from '../../io/listener/control-paths.ts'
import { hostsOfPort, openRenewedPort, type RenewedPort } from '../../io/listener/renewed-port.ts'
import { DEFAULT_TLS_POLICY, type TlsPolicy } from '../../io/listener/tls-policy.ts'
import { ensureControlPki, readControlTokenKey } from '../../io/pki/control-pki.ts'
import { createTokenVerifier } from '../../io/pki/control-tokens.ts'
import { isIssuedBy, issueServingCertificate, type KeyPair } from '../../io/pki/pki.ts'
import { keyPairFiles, readKeyPair } from '../../io/pki/pki-files.ts'
import { createWebhookTokens } from '../../io/pki/webhook-tokens.ts'
import { createWebhookAuthenticator, type WebhookAuthenticator } from '../../webhooks/protection-webhook-callers.ts'

export interface ProtectionPortOptions {
  readonly listen: ListenAddress
  /** Names and addresses by which kube-apiservers reach it (--control-host): `portcullis.portcullis-system.svc`. */
  readonly hosts: readonly string[]
  /** --data-dir. */
  readonly dataDir: string
  /** The revoked credentials. Default: none. */
  readonly revoked?: RevocationCheck | undefined
  /** What clients may use. Default: TLS 1.2, the suites of Node. */
  readonly tls?: TlsPolicy
  readonly log: Logger
}

const MS_PER_DAY = 24 * 60 * 60 * 1000
const RENEW_BEFORE_MS = 30 * MS_PER_DAY
/** How long running reviews may take: as long as any. */
const CLOSE_WITHIN_MS = 10_000

export class ProtectionPort {
  readonly #options: ProtectionPortOptions
  readonly #dir: string
  /** PEM, for caBundle. */
  readonly caPem: string
  /** For the handler. */
  readonly authenticate: WebhookAuthenticator
  #serving: KeyPair
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
    this.caPem = this.#ca().certPem
    this.authenticate = createWebhookAuthenticator({
      clientCAs: [this.caPem],
      tokens: createTokenVerifier(tokenKey),
      webhookTokens: createWebhookTokens(tokenKey),
      revoked: options.revoked,
      now: Date.now,
    })
    this.#serving = this.#currentServing()
  }

  /** 0 = not open. */
  get port(): number {
    return this.#open?.port ?? 0
  }

  /** PEM of what it shows now. */
  get servingCert(): string {
    return this.#serving.certPem
  }

  /** @throws {UserError} when the port cannot be opened */
  async open(handler: RequestHandler): Promise<void> {
    const { listen, log } = this.#options
    const serving = () => {
      this.#serving = this.#currentServing(this.#serving)
      return { cert: this.#serving.certPem, key: this.#serving.keyPem }
    }
    this.#open = await openRenewedPort({
      listen,
      flag: '--protection-listen',
      clientCAs: [this.caPem],
      tls: this.#options.tls ?? DEFAULT_TLS_POLICY,
      serving,
      files: keyPairFiles(this.#dir, 'tls'),
      handler,
      log,
    })
  }

  async close(): Promise<void> {
    await this.#open?.close(CLOSE_WITHIN_MS)
    this.#open = undefined
  }

  /**
   * A certificate that the operator has put in the place of the control plane's; otherwise one of our CA, which need not be kept: nobody
   * knows it except by the CA.
   */
  #currentServing(last?: KeyPair): KeyPair {
    const ca = this.#ca()
    const file = readKeyPair(this.#dir, 'tls')
    if (file !== undefined && !isIssuedBy(file, ca)) return file
    if (last !== undefined && isIssuedBy(last, ca) && !endsSoon(last)) return last
    const hosts = this.#hosts()
    return issueServingCertificate(ca, hosts)
  }

  #ca(): KeyPair {
    const ca = readKeyPair(this.#dir, 'ca')
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
