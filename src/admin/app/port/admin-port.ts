// The admin listener (--admin-listen) with its certificate, token and client CA, which are reread when they change, and its access control.

import { randomUUID } from 'node:crypto'
import type { PlainRequest, PlainServer, PlainTls } from '../../../gateway/io/listener/http-plain.ts'
import { tlsPolicy } from '../../../gateway/io/listener/tls-policy.ts'
import type { Logger } from '../../../kit/api/ports.ts'
import { auditLine } from '../../../kube/io/audit/audit-event.ts'
import type { OwnCertificate } from '../../../process/certificates/own-certificates.ts'
import { PortFiles } from '../../../process/certificates/port-files.ts'
import type { Config } from '../../../process/config/config.ts'
import type { OwnPortFailures } from '../../../process/failures/own-ports.ts'
import type { AdminAccess, AdminRoute, AdminUser, CreateBrowserLogins } from '../../io/server/route.ts'
import type { AdminState, MetricsText } from '../../io/server/routes.ts'
import { startAdminServer } from '../../io/server/server.ts'
import { type AdminLogin, localAccess, loginAccess } from '../access/admin-access.ts'

/** How often to check for new client CAs. */
const CA_LOOK_MS = 1_000

interface AdminPortOptions {
  readonly config: Config
  readonly state: AdminState
  readonly metrics: MetricsText
  /** Routes besides health, metrics and configuration. */
  readonly routes: readonly AdminRoute[]
  /** Login through the objects' API server; undefined = there is none. */
  readonly login: AdminLogin | undefined
  /** Default: a browser cannot log in. */
  readonly browserLogins?: CreateBrowserLogins | undefined
  /** Counts failed credentials and handshakes, together with those of other ports. Default: not counted. */
  readonly failures?: OwnPortFailures
  readonly log: Logger
  /** undefined = no audit log. */
  readonly audit: WriteAudit | undefined
  /** Certificate and token. Default: read from the settings' files. */
  readonly files?: PortFiles
}

/** @throws {UserError} if a file is unusable */
export function adminFiles(config: Config, log: Logger): PortFiles {
  return new PortFiles({
    name: 'admin-serving',
    cert: { flag: '--admin-tls-cert-file', file: config.adminTlsCertFile },
    key: { flag: '--admin-tls-private-key-file', file: config.adminTlsPrivateKeyFile },
    token: { flag: '--admin-token-file', file: config.adminTokenFile },
    log,
  })
}

export class AdminPort {
  readonly #options: AdminPortOptions
  readonly #files: PortFiles
  #clientCA = ''
  #server: PlainServer | undefined
  #looking: NodeJS.Timeout | undefined

  /** @throws an Error with one clear line for errors that the operator can fix */
  static async open(options: AdminPortOptions): Promise<AdminPort> {
    const port = new AdminPort(options)
    await port.#start()
    return port
  }

  private constructor(options: AdminPortOptions) {
    this.#options = options
    this.#files = options.files ?? adminFiles(options.config, options.log)
  }

  get port(): number {
    return this.#server?.port ?? 0
  }

  get certificates(): readonly OwnCertificate[] {
    return this.#files.certificates
  }

  /** Keyed by file flag: whether its content is in force. */
  get reloads(): ReadonlyMap<string, boolean> {
    return this.#files.reloads
  }

  async stop(): Promise<void> {
    clearInterval(this.#looking)
    this.#files.stop()
    await this.#server?.stop()
  }

  async #start(): Promise<void> {
    const { config, state, metrics, routes, browserLogins, failures, log, audit } = this.#options
    const plain = this.#access()
    const secure = this.#files.serving !== undefined
    const browsers = browserLogins?.({ access: plain, secure, ...(failures && { failures }) })
    const access = audited(browsers?.access ?? plain, log, audit)
    const all = [...routes, ...(browsers?.routes ?? [])]
    this.#server = await startAdminServer({
      listen: config.adminListen,
      state,
      metrics,
      routes: all,
      access,
      log,
      tls: this.#tls(),
    })
    this.#files.follow((serving) => this.#server?.setServing(serving))
    if (this.#files.serving !== undefined) this.#looking = setInterval(() => this.#lookAtCA(), CA_LOOK_MS).unref()
  }

  #tls(): PlainTls | undefined {
    const { serving } = this.#files
    if (serving === undefined) return undefined
    const { config, login, failures } = this.#options
    const policy = tlsPolicy(config.tlsMinVersion, config.tlsCipherSuites)
    this.#clientCA = login?.clientCA() ?? ''
    const onHandshakeFailed = (source: string): void => failures?.handshakeFailed(source)
    return {
      serving,
      policy,
      onHandshakeFailed,
      ...(login !== undefined && { clientCA: this.#clientCA }),
    }
  }

  #access(): AdminAccess {
    const { config, login, failures } = this.#options
    const { serving } = this.#files
    if (serving === undefined && config.adminTokenFile === '') return localAccess
    // User credentials are not requested without TLS, not even on this machine.
    const users = serving === undefined ? undefined : login
    return loginAccess({ token: () => this.#files.token, login: users, ...(failures && { failures }) })
  }

  #lookAtCA(): void {
    const clientCA = this.#options.login?.clientCA() ?? ''
    const { serving } = this.#files
    if (serving === undefined || clientCA === this.#clientCA) return
    this.#clientCA = clientCA
    this.#server?.setServing(serving, clientCA)
  }
}

// Records who used a route that shows or changes process internals, or opened a tap: one log line, and an audit event.

/** Receives a line, without its end. */
type WriteAudit = (line: string) => void

/** Maximum characters of client-supplied text in logs. */
const MAX_TEXT = 256

function audited(access: AdminAccess, log: Logger, audit: WriteAudit | undefined): AdminAccess {
  return async (request, route) => {
    const admitted = await access(request, route)
    if (!(route.audited ?? route.access === 'admin')) return admitted
    const { method, path, remoteAddress } = request
    const code = 'refused' in admitted ? admitted.refused.code : 200
    const user = 'refused' in admitted ? undefined : admitted.user
    // Refusals only go to the audit log: otherwise unauthenticated clients could fill the log.
    const fields = { method, path: path.slice(0, MAX_TEXT), user: nameOf(user), address: remoteAddress }
    if (user !== undefined) log.info('admin listener used', fields)
    audit?.(eventLine(request, user, code))
    return admitted
  }
}

function nameOf(user: AdminUser | undefined): string {
  return (user?.name ?? '').slice(0, MAX_TEXT) || '(on this machine)'
}

function eventLine(request: PlainRequest, user: AdminUser | undefined, code: number): string {
  const now = Date.now()
  const query = request.query.toString()
  return auditLine({
    auditId: randomUUID(),
    stage: code === 200 ? 'ResponseStarted' : 'ResponseComplete',
    requestURI: (query === '' ? request.path : `${request.path}?${query}`).slice(0, 1024),
    verb: request.method.toLowerCase(),
    user: user && { name: user.name, uid: '', groups: user.groups },
    impersonatedUser: undefined,
    sourceIP: request.remoteAddress,
    userAgent: request.header('user-agent').slice(0, MAX_TEXT),
    object: undefined,
    response: { code },
    receivedMs: now,
    stageMs: now,
    annotations: { 'portcullis.io/listener': 'admin' },
  })
}
