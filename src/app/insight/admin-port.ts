// The admin listener (--admin-listen) with what belongs to it: certificate, token and client CA, which are read again when they change, and
// who may use it.

import { randomBytes } from 'node:crypto'
import { loginSessions } from '../../admin/dashboard/sessions.ts'
import type { AdminAccess, AdminRoute } from '../../admin/route.ts'
import type { AdminState, MetricsText } from '../../admin/routes.ts'
import { startAdminServer } from '../../admin/server.ts'
import type { Logger } from '../../api/ports/ports.ts'
import type { PlainServer, PlainTls } from '../../io/listener/http-plain.ts'
import type { ServingPair } from '../../io/listener/tls-contexts.ts'
import { tlsPolicy } from '../../io/listener/tls-policy.ts'
import { dashboardFiles } from '../../io/program/dashboard-files.ts'
import { systemClock } from '../../io/world/clock.ts'
import { type AdminLogin, localAccess, loginAccess } from '../access/admin-access.ts'
import { readTokenFile } from '../access/bearer-token.ts'
import { createLoginAttempts } from '../access/login-attempts.ts'
import type { OwnCertificate } from '../certificates/own-certificates.ts'
import { readPairFiles } from '../certificates/serving-pair.ts'
import type { Config } from '../config/config.ts'
import { ReloadedFiles } from '../config/reloaded-files.ts'
import type { OwnPortFailures } from '../failures/own-ports.ts'
import { audited, type WriteAudit } from './audited.ts'

const SESSION_ID_BYTES = 32
const CERT_FLAG = '--admin-tls-cert-file'
const KEY_FLAG = '--admin-tls-private-key-file'
const TOKEN_FLAG = '--admin-token-file'
/** How often to look whether other CAs sign client certificates. */
const CA_LOOK_MS = 1_000

export interface AdminPortOptions {
  readonly config: Config
  readonly state: AdminState
  readonly metrics: MetricsText
  /** Beside health, metrics and configuration. */
  readonly routes: readonly AdminRoute[]
  /** Of the API server of the objects; undefined = there is none. */
  readonly login: AdminLogin | undefined
  /** Default: credentials and handshakes that fail are not counted together with those of the other ports. */
  readonly failures?: OwnPortFailures
  readonly log: Logger
  /** undefined = no audit log. */
  readonly audit: WriteAudit | undefined
}

export class AdminPort {
  readonly #options: AdminPortOptions
  #serving: ServingPair | undefined
  #token = ''
  #clientCA = ''
  #server: PlainServer | undefined
  #looking: NodeJS.Timeout | undefined
  readonly #reloaded: ReloadedFiles[] = []

  /** @throws an Error with one clear line for what the operator can fix */
  static async open(options: AdminPortOptions): Promise<AdminPort> {
    const port = new AdminPort(options)
    await port.#start()
    return port
  }

  private constructor(options: AdminPortOptions) {
    this.#options = options
  }

  get port(): number {
    return this.#server?.port ?? 0
  }

  /** The token of --admin-token-file, as it is now; '' = none. */
  get token(): string {
    return this.#token
  }

  /** PEM, as it is now; '' = no TLS. */
  get servingCertificate(): string {
    return this.#serving?.cert ?? ''
  }

  get certificates(): readonly OwnCertificate[] {
    return this.#serving === undefined ? [] : [{ name: 'admin-serving', pem: this.#serving.cert }]
  }

  /** By the flag that names the file: whether its content is in force. */
  get reloads(): ReadonlyMap<string, boolean> {
    return new Map(this.#reloaded.map(({ label, inForce }) => [label, inForce]))
  }

  async stop(): Promise<void> {
    clearInterval(this.#looking)
    for (const reloaded of this.#reloaded) reloaded.stop()
    await this.#server?.stop()
  }

  async #start(): Promise<void> {
    const { config, state, metrics, routes, log, audit } = this.#options
    const { adminListen, adminTlsCertFile, adminTlsPrivateKeyFile, adminTokenFile } = config
    if (adminTlsCertFile !== '') this.#serving = this.#readPair()
    if (adminTokenFile !== '') this.#token = readTokenFile(TOKEN_FLAG, adminTokenFile)
    const login = loginSessions({
      access: this.#access(),
      files: dashboardFiles,
      secure: this.#serving !== undefined,
      clock: systemClock,
      randomId: () => randomBytes(SESSION_ID_BYTES).toString('base64url'),
      attempts: createLoginAttempts(this.#options.failures),
    })
    const access = audited(login.access, log, audit)
    const all = [...routes, ...login.routes]
    this.#server = await startAdminServer({
      listen: adminListen,
      state,
      metrics,
      routes: all,
      access,
      log,
      tls: this.#tls(),
    })
    if (adminTlsCertFile !== '') {
      this.#follow(CERT_FLAG, [adminTlsCertFile, adminTlsPrivateKeyFile], () => {
        this.#serving = this.#readPair()
        this.#server?.setServing(this.#serving)
      })
      this.#looking = setInterval(() => this.#lookAtCA(), CA_LOOK_MS).unref()
    }
    if (adminTokenFile !== '') {
      this.#follow(TOKEN_FLAG, [adminTokenFile], () => {
        this.#token = readTokenFile(TOKEN_FLAG, adminTokenFile)
      })
    }
  }

  #tls(): PlainTls | undefined {
    if (this.#serving === undefined) return undefined
    const { config, login, failures } = this.#options
    const policy = tlsPolicy(config.tlsMinVersion, config.tlsCipherSuites)
    this.#clientCA = login?.clientCA() ?? ''
    const onHandshakeFailed = (source: string): void => failures?.handshakeFailed(source)
    return {
      serving: this.#serving,
      policy,
      onHandshakeFailed,
      ...(login !== undefined && { clientCA: this.#clientCA }),
    }
  }

  #access(): AdminAccess {
    const { config, login, failures } = this.#options
    if (this.#serving === undefined && config.adminTokenFile === '') return localAccess
    // A credential of a user is not asked for in the clear, not even on this machine.
    const users = this.#serving === undefined ? undefined : login
    return loginAccess({ token: () => this.#token, login: users, ...(failures && { failures }) })
  }

  #lookAtCA(): void {
    const clientCA = this.#options.login?.clientCA() ?? ''
    if (this.#serving === undefined || clientCA === this.#clientCA) return
    this.#clientCA = clientCA
    this.#server?.setServing(this.#serving, clientCA)
  }

  #readPair(): ServingPair {
    const { adminTlsCertFile, adminTlsPrivateKeyFile } = this.#options.config
    return readPairFiles({ flag: CERT_FLAG, file: adminTlsCertFile }, { flag: KEY_FLAG, file: adminTlsPrivateKeyFile })
  }

  /** @param read throws when the content cannot be used */
  #follow(flag: string, files: readonly string[], read: () => void): void {
    const { log } = this.#options
    const label = flag.slice('--'.length)
    this.#reloaded.push(new ReloadedFiles({ label, what: `the file of ${flag}`, files, read, log }))
  }
}
