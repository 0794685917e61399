// The life of the process: start, ready, drain, stop. `starting` until configuration and first health checks are in, `ready`,
// `draining` from SIGTERM, `stopped`.

import { readFileSync } from 'node:fs'
import type { Check } from '../admin/routes.ts'
import { startAdminServer } from '../admin/server.ts'
import { UserError } from '../api/field-errors.ts'
import type { Logger, ResourceSource } from '../api/ports.ts'
import { createFilesSource } from '../io/files-source.ts'
import { requireFreePort } from '../io/free-port.ts'
import type { PlainServer } from '../io/http-plain.ts'
import { type LineWriter, openLineWriter } from '../io/line-writer.ts'
import { createLogger } from '../io/log.ts'
import { nodePemChecks } from '../io/pem-checks.ts'
import { ensureServingCertificate } from '../io/serving-certificate.ts'
import type { ServingPair } from '../io/tls-contexts.ts'
import type { Config } from './config.ts'
import { describeState } from './describe.ts'
import { type Parts, wire } from './wire.ts'

export interface RunningGateway {
  readonly ports: readonly number[]
  readonly adminPort: number
  /** Drains: readyz fails, GOAWAY, running requests finish, watches end spread over the drain time. A second call ends at once. */
  stop(): Promise<void>
  /** Resolves when every gateway thread has put in force what the source has delivered. */
  applied(): Promise<void>
  /** Ends a gateway thread at once, as a crash would: for tests of what the others do. */
  crashThread(thread: number): Promise<void>
}

const STDOUT = 1
const STDERR = 2
/** What takes the place of the usual parts. */
export interface GivenParts {
  /** Where the access log goes instead of stdout; switches it on. */
  readonly access: LineWriter
  readonly log: Logger
  readonly source: ResourceSource
  /** One gateway thread, inside this one, whatever the configuration says: for tests. */
  readonly inline: boolean
}

/** @throws {UserError} with one clear line for what the operator can mend */
export async function startGateway(config: Config, given: Partial<GivenParts> = {}): Promise<RunningGateway> {
  const log = given.log ?? createLogger({ level: config.logLevel, destination: openLineWriter(STDERR) })
  const source = given.source ?? createFilesSource({ dir: config.configDir, pem: nodePemChecks, log })
  const serving = loadServingPair(config)
  const access = given.access ?? (config.accessLog ? openLineWriter(STDOUT) : undefined)
  const audit = config.auditLogPath === '' ? undefined : openAuditLog(config.auditLogPath)
  const parts = wire(config, serving, { log, access, audit }, source, given.inline ?? false)
  const life = new Lifecycle(config, parts, log, [access, audit])
  try {
    await life.start()
  } catch (error) {
    await life.abandon()
    throw error
  }
  return life
}

function openAuditLog(path: string): LineWriter {
  try {
    return openLineWriter(path === '-' ? STDOUT : path)
  } catch (error) {
    throw new UserError(
      `cannot open the audit log ${path}: ${reasonOf(error)}`,
      'name a file in a directory that exists',
    )
  }
}

class Lifecycle implements RunningGateway {
  readonly #config: Config
  readonly #parts: Parts
  readonly #log: Logger
  readonly #writers: readonly (LineWriter | undefined)[]
  #state: 'starting' | 'ready' | 'draining' | 'stopped' = 'starting'
  #synced = false
  #probed = false
  #ports: readonly number[] = []
  #admin: PlainServer | undefined
  #stopping: Promise<void> | undefined

  constructor(config: Config, parts: Parts, log: Logger, writers: readonly (LineWriter | undefined)[]) {
    this.#config = config
    this.#parts = parts
    this.#log = log
    this.#writers = writers
  }

  get ports(): readonly number[] {
    return this.#ports
  }

  get adminPort(): number {
    return this.#admin?.port ?? 0
  }

  /** The admin listener opens first, so that /readyz can say what is missing; the proxy ports open last. */
  async start(): Promise<void> {
    const { source, probes, apply, metrics, pool } = this.#parts
    this.#admin = await startAdminServer({
      listen: this.#config.adminListen,
      metrics,
      state: {
        live: () => [],
        ready: () => this.#checks(),
        describe: () => describeState(this.#parts, this.#draining),
      },
    })
    // Threads share ports; a port that somebody else shares would be none of ours.
    for (const address of this.#config.listen) await requireFreePort(address)
    pool.start()
    await source.start(apply)
    this.#synced = true
    await Promise.all([probes.firstRound(), pool.online()])
    await pool.applied()
    this.#probed = true
    this.#ports = await pool.listen(this.#config.listen)
    this.#state = 'ready'
  }

  get #draining(): boolean {
    return this.#state === 'draining' || this.#state === 'stopped'
  }

  applied(): Promise<void> {
    return this.#parts.pool.applied()
  }

  async crashThread(thread: number): Promise<void> {
    await this.#parts.pool.seats[thread]?.terminate()
  }

  #checks(): Check[] {
    return [
      { name: 'configuration', ok: this.#synced, message: 'not read yet' },
      { name: 'health-checks', ok: this.#probed, message: 'the first round has not ended' },
      { name: 'listeners', ok: this.#ports.length > 0, message: 'not open yet' },
      { name: 'shutdown', ok: !this.#draining, message: 'shutting down' },
    ]
  }

  stop(): Promise<void> {
    // The second signal: at once.
    if (this.#stopping !== undefined) this.#parts.pool.cut()
    else this.#stopping = this.#drain()
    return this.#stopping
  }

  async #drain(): Promise<void> {
    const { pool } = this.#parts
    const { drainTimeoutMs } = this.#config
    this.#state = 'draining'
    this.#log.info('draining', { timeoutMs: drainTimeoutMs })
    const deadline = setTimeout(() => pool.cut(), drainTimeoutMs)
    await pool.drain()
    clearTimeout(deadline)
    await this.#end()
  }

  async #end(): Promise<void> {
    const { probes, source, pool, upstreams } = this.#parts
    probes.stop()
    await source.stop()
    await pool.end()
    upstreams.destroy()
    await this.#admin?.stop()
    this.#state = 'stopped'
    this.#log.info('stopped')
    for (const writer of this.#writers) await writer?.close()
  }

  /** Starting failed: gives back what was opened. */
  async abandon(): Promise<void> {
    const { probes, source, pool, upstreams } = this.#parts
    probes.stop()
    await source.stop().catch(() => undefined)
    await pool.end()
    upstreams.destroy()
    await this.#admin?.stop()
  }
}

function loadServingPair(config: Config): ServingPair {
  const { tlsCertFile, tlsPrivateKeyFile, dataDir } = config
  if (tlsCertFile === '' && tlsPrivateKeyFile === '') {
    const { certPem, keyPem } = ensureServingCertificate(dataDir)
    return { cert: certPem, key: keyPem }
  }
  const cert = readPem(tlsCertFile, '--tls-cert-file')
  const key = readPem(tlsPrivateKeyFile, '--tls-private-key-file')
  // What OpenSSL does not take is found here, and not in the first handshake.
  checkPem(`--tls-cert-file ${tlsCertFile}`, nodePemChecks.certificatesError(cert))
  checkPem(`--tls-private-key-file ${tlsPrivateKeyFile}`, nodePemChecks.privateKeyError(key))
  if (!nodePemChecks.keyMatches(cert, key)) {
    const fix = 'name the key that the certificate was issued for'
    throw new UserError(`--tls-private-key-file ${tlsPrivateKeyFile} does not belong to ${tlsCertFile}`, fix)
  }
  return { cert, key }
}

function checkPem(what: string, problem: string): void {
  if (problem !== '') throw new UserError(`${what}: ${problem}`, 'name a PEM file')
}

function readPem(file: string, flag: string): string {
  if (file === '')
    throw new UserError(`${flag} is missing`, 'give both --tls-cert-file and --tls-private-key-file, or neither')
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    throw new UserError(`cannot read ${flag} ${file}: ${reasonOf(error)}`, 'name a readable PEM file')
  }
}

function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
