// The control port: the embedded API server, or the webhook for CRDs. Its certificate is renewed while it is open.

import type { PortAdmission } from '../../gateway/io/listener/connections.ts'
import { controlPaths } from '../../gateway/io/listener/control-paths.ts'
import { hostsOfPort, openRenewedPort, type RenewedPort } from '../../gateway/io/listener/renewed-port.ts'
import { tlsPolicy } from '../../gateway/io/listener/tls-policy.ts'
import type { Logger } from '../../kit/api/ports.ts'
import type { RequestHandler } from '../../kit/api/stream.ts'
import { formatListenAddress } from '../../kit/core/listen-address.ts'
import { type ControlPki, ensureControlPki } from '../../pki/io/control-pki.ts'
import { keyPairFiles, readTextFile, requireFiles } from '../../pki/io/pki-files.ts'
import type { OwnCertificate } from '../../process/certificates/own-certificates.ts'
import type { Config } from '../../process/config/config.ts'

/** Watches have already ended: only responses are still being sent. */
const CLOSE_WITHIN_MS = 500

export class ControlPort {
  readonly #config: Config
  readonly #log: Logger
  readonly #dir: string
  pki: ControlPki
  /** Admission of clients once it is open. */
  admission: PortAdmission | undefined
  #open: RenewedPort | undefined

  constructor(config: Config, log: Logger) {
    this.#config = config
    this.#log = log
    this.#dir = controlPaths(config.dataDir).pki
    this.pki = this.#ensurePki(config.controlListen.port)
  }

  get port(): number {
    return this.#open?.port ?? 0
  }

  /** Whether the PKI files' current content is in force. */
  get reloads(): ReadonlyMap<string, boolean> {
    return new Map(this.#open === undefined ? [] : [['control-pki', this.#open.problem === '']])
  }

  get certificates(): readonly OwnCertificate[] {
    const { servingCert, caPem } = this.pki
    return [
      { name: 'control-serving', pem: servingCert },
      { name: 'control-ca', pem: caPem },
    ]
  }

  /** The address for commands on this machine; every self-made certificate contains these names. */
  get localUrl(): string {
    const { host } = this.#config.controlListen
    const local = host === '' || host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '::1' : host
    return `https://${formatListenAddress({ host: local, port: this.port })}`
  }

  /** @param onClientCA another CA now verifies clients, including those on open connections */
  async open(handler: RequestHandler, onClientCA: () => void = () => undefined): Promise<void> {
    const { controlListen } = this.#config
    const [pair, ca] = [keyPairFiles(this.#dir, 'tls'), keyPairFiles(this.#dir, 'ca')]
    let next = this.pki
    const certificates = () => {
      // Missing files would be recreated, while they are perhaps being replaced.
      requireFiles(ca)
      if (readTextFile(ca[0]) === this.pki.caPem) requireFiles(pair)
      next = this.#ensurePki(this.#open?.port ?? controlListen.port)
      return { serving: { cert: next.servingCert, key: next.servingKey }, clientCA: next.caPem }
    }
    const onInForce = () => {
      const { caPem } = this.pki
      this.pki = next
      if (next.caPem !== caPem) onClientCA()
    }
    const { tlsMinVersion, tlsCipherSuites } = this.#config
    this.#open = await openRenewedPort({
      listen: controlListen,
      flag: '--control-listen',
      tls: tlsPolicy(tlsMinVersion, tlsCipherSuites),
      certificates,
      onInForce,
      files: [...pair, ...ca],
      handler,
      admission: this.admission,
      log: this.#log,
    })
    // The port number is known now, and admin.kubeconfig contains it.
    this.pki = this.#ensurePki(this.#open.port)
  }

  async close(): Promise<void> {
    await this.#open?.close(CLOSE_WITHIN_MS)
  }

  #ensurePki(port: number): ControlPki {
    const hosts = hostsOfPort(this.#config.controlHosts, this.#config.controlListen)
    const server = `https://${formatListenAddress({ host: hosts[0] ?? 'localhost', port })}`
    const formerCaPem = this.pki?.caPem ?? ''
    return ensureControlPki(this.#dir, hosts, { server, formerCaPem })
  }
}
