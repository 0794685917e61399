// What every row needs: the programs, a load client, and a report.

import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import process from 'node:process'
import { setTimeout as sleep } from 'node:timers/promises'
import { clientProgram } from './client-program.ts'
import { connectControl, createObjects } from './control.ts'
import { type ClusterOptions, type HAProxyOptions, HOST, type Keys, Material, SMALL_PATH, TOKEN } from './material.ts'
import { Client, childOf, cpuSeconds, freePort, type Place, type Server, startServer } from './processes.ts'
import type { Report } from './report.ts'
import { nghttpxVersion } from './versions.ts'

/** 'tokens': a different one for each connection; `LoadOptions.tokens` says which. */
export type Identity = 'x509' | 'token' | 'tokens'

/** One measurement of GETs. */
export interface LoadSample {
  readonly perSecond: number
  /** CPU of the proxy alone, all its threads. */
  readonly cpuMicros: number
  /** Cores that the proxy used, e.g. 0.98. */
  readonly cores: number
  /** Latency, milliseconds. */
  readonly p50: number
  readonly p99: number
  /** Latency of the request that was answered first, milliseconds. */
  readonly first: number
  /** CPU of the client, seconds. */
  readonly clientSeconds: number
  readonly seconds: number
  readonly requests: number
  /** Requests that failed: never more than was tolerated. */
  readonly errors: number
  /** CLOCK_MONOTONIC, microseconds. */
  readonly startMicros: number
  readonly endMicros: number
}

export interface ClientOptions {
  /** Default x509. */
  readonly identity?: Identity
  /** Default 'load'. */
  readonly place?: Place
  /** What its certificate is made with. Default P-256. */
  readonly keys?: Keys
}

export interface LoadOptions extends ClientOptions {
  readonly connections?: number
  readonly streams?: number
  /** Requests a second. Default: as many as it takes (closed loop). */
  readonly rate?: number
  /** Default 1.5. */
  readonly seconds?: number
  /** Prefix of the tokens: a run with the same prefix has the same tokens. */
  readonly tokens?: string
  /** How many to send at most. Default: as many as the seconds allow. */
  readonly requests?: number
  /** Requests before the measurement, for `seconds` at most. Default 2,000. */
  readonly warmUp?: number
  /** Awaited when connections are open and warm, before the measurement. Default: none. */
  readonly when?: Promise<void>
  /** Default GET. */
  readonly method?: string
  /** '%s' stands for the number of the connection, as its token has it. Default: the small object's. */
  readonly path?: string
  /** HTTP/1.1 instead of HTTP/2: one request at a time on a connection. Default false. */
  readonly http1?: boolean
  /** Bytes of each request's body. Default 0. */
  readonly body?: number
  /** The part of the requests that may fail. Default: the run's. */
  readonly tolerated?: number
}

export interface GatewayOptions extends ClusterOptions {
  readonly name?: string
  /** Default 1. */
  readonly threads?: number
  /** A file for audit events. Default: none. */
  readonly auditLog?: string
  readonly place?: Place
  /** The port of a gateway that ran before, whose files it finds. Default: a free one. */
  readonly port?: number
  /** The checkout to run. Default: the one that is measured. */
  readonly root?: string
  /** What is started instead of the checkout's `bin/portcullis`. */
  readonly program?: string
  /** Further settings, as flags. */
  readonly flags?: readonly string[]
  /** For node itself. */
  readonly nodeArgs?: readonly string[]
  /** Environment variables. Default: none but the run's own. */
  readonly env?: Readonly<Record<string, string>>
  /** Objects live in its embedded API server (`control.ts`) and are not written to files. Default false. */
  readonly embedded?: boolean
  /** Whether it gets no request before it is handed out: `/readyz` says that it is ready. Default false: requests are answered. */
  readonly untouched?: boolean
}

/** A running Portcullis. */
export interface Gateway extends Server {
  readonly admin: number
  /** The port of the embedded API server. */
  readonly control: number
  readonly dataDir: string
  /** When requests were first answered, or, if `untouched`, when it was ready, as `performance.now()`. */
  readonly servesSinceMs: number
}

/** How many UpstreamClusters it has in force. */
async function clustersOf(gateway: { readonly admin: number }): Promise<number> {
  const metrics = await (await fetch(`http://127.0.0.1:${gateway.admin}/metrics`)).text()
  return Number(/^portcullis_config_clusters (\d+)$/m.exec(metrics)?.[1])
}

/** Waits until it says that it is ready. */
async function ready(gateway: { readonly name: string; readonly admin: number }): Promise<void> {
  const deadline = performance.now() + HEALTHY_SECONDS * 1000
  while (!(await fetch(`http://127.0.0.1:${gateway.admin}/readyz`)).ok) {
    if (performance.now() > deadline) throw new Error(`${gateway.name} is not ready`)
    await sleep(HEALTHY_AGAIN_MS)
  }
}

interface LoadLine {
  readonly requests: number
  readonly errors: number
  readonly seconds: number
  readonly perSecond: number
  readonly p50Micros: number
  readonly p99Micros: number
  readonly firstMicros: number
  readonly startMicros: number
  readonly endMicros: number
}

/** Connections and their first requests are not what is measured. */
const CONNECTION_WARM_UP = 2_000
/** V8's compiler runs on the gateway's own core for about so long after a start: at 4 s it still took 5.6 % of what a request was said to cost. */
const WARM_UP_SECONDS = 8
/** Thousands of clusters need some. */
const START_SECONDS = 180
const HEALTHY_SECONDS = 180
const HEALTHY_AGAIN_MS = 200

export class Bench {
  readonly rounds: number
  readonly report: Report
  /** The checkout whose gateway is measured. */
  readonly root: string
  /** The part of the requests that may fail in a measurement. */
  readonly tolerated: number
  readonly material: Material = new Material()
  readonly #client: string = clientProgram()
  /** The help of `serve`, by checkout. */
  readonly #help = new Map<string, string>()

  constructor(rounds: number, report: Report, root: string, tolerated = 0) {
    this.rounds = rounds
    this.report = report
    this.root = root
    this.tolerated = tolerated
  }

  /** Whether the gateway can be given a number of threads. */
  get hasThreads(): boolean {
    return this.#knows(this.root, '--threads')
  }

  /** Whether the gateway of a checkout, which may be of an earlier version, has a flag. */
  #knows(root: string, flag: string): boolean {
    let help = this.#help.get(root)
    if (help === undefined) {
      help = execFileSync(process.execPath, [join(root, 'src/main.ts'), 'serve', '--help']).toString()
      this.#help.set(root, help)
    }
    return help.includes(flag)
  }

  /** nghttpd: one thread, faster than any proxy here. */
  nghttpd(place: Place = 'load'): Promise<Server> {
    const port = freePort()
    const { material } = this
    const files = [String(port), material.path('server.key'), material.path('server.pem')]
    const args = ['-n', '1', '-d', material.path('www'), ...files]
    return startServer({ name: 'direct', port, command: 'nghttpd', args, place })
  }

  /**
   * The upstream for watches, large lists, uploads and upgrades; listens on `endpoints` ports from its first on. `admin` is
   * the port that starts a broadcast.
   */
  async upstream(endpoints: number = 1, flags: readonly string[] = []): Promise<Server & { readonly admin: number }> {
    const port = freePort(endpoints)
    const admin = freePort()
    const files = [`-cert=${this.material.path('server.pem')}`, `-key=${this.material.path('server.key')}`]
    const args = ['upstream', `-port=${port}`, `-ports=${endpoints}`, `-admin=${admin}`, ...files, ...flags]
    return { ...(await startServer({ name: 'direct', port, command: this.#client, args, place: 'load' })), admin }
  }

  haproxy(upstreamPort: number, options: HAProxyOptions & { readonly name?: string } = {}): Promise<Server> {
    const port = freePort()
    const { name = 'HAProxy' } = options
    const args = ['-db', '-f', this.material.haproxyConfig(port, upstreamPort, options)]
    const output = options.log === true ? this.material.path(`haproxy-${port}.log`) : undefined
    return startServer({ name, port, command: 'haproxy', args, place: 'proxy', output })
  }

  /** nghttpx, where it is installed: a proxy in C++ that does HTTP/2 on both sides and not much else. Without it a note says so. */
  async nghttpx(upstreamPort: number): Promise<Server | undefined> {
    if (nghttpxVersion() === undefined) {
      this.report.note('nghttpx is left out: it is not installed (Debian: nghttp2-proxy).')
      return undefined
    }
    const port = freePort()
    const args = this.material.nghttpxFlags(port, upstreamPort)
    const server = await startServer({ name: 'nghttpx', port, command: 'nghttpx', args, place: 'proxy' })
    // The first process starts the one that works, and takes it along when it ends.
    return { ...server, pid: await childOf(server.pid) }
  }

  /** The gateway that one gets off the shelf in Node (node-gateway/server.ts), with two servers of its own over HTTP/1.1. */
  async nodeGateway(): Promise<Server> {
    const upstream = await this.upstream(2)
    const port = freePort()
    const args = [
      join(import.meta.dirname, 'node-gateway/server.ts'),
      `--port=${port}`,
      `--upstreams=${upstream.port},${upstream.port + 1}`,
      `--ca=${this.material.path('ca.pem')}`,
      `--cert=${this.material.path('server.pem')}`,
      `--key=${this.material.path('server.key')}`,
      `--servername=${HOST}`,
    ]
    return startServer({ name: 'http2-proxy', port, command: process.execPath, args, place: 'proxy' })
  }

  /** The full path: identity, policies, token bucket, impersonation, metrics; access log off. */
  async portcullis(options: GatewayOptions): Promise<Gateway> {
    const { port = freePort() } = options
    const admin = freePort()
    const root = options.root ?? this.root
    const threads = this.hasThreads ? [`--threads=${options.threads ?? 1}`] : []
    const control = freePort()
    const dataDir = this.material.path(`data-${port}`)
    const source =
      options.embedded === true
        ? ['--source=embedded', `--control-listen=127.0.0.1:${control}`]
        : ['--source=files', `--config-dir=${this.material.clusters(`clusters-${port}`, options)}`]
    const args = [
      'serve',
      ...source,
      `--listen=127.0.0.1:${port}`,
      `--admin-listen=127.0.0.1:${admin}`,
      `--data-dir=${dataDir}`,
      `--access-log=${options.logged === true}`,
      '--drain-timeout=1s',
      ...threads,
      ...(this.#knows(root, '--allow-local-servers') ? ['--allow-local-servers=127.0.0.1'] : []),
      ...(options.flags ?? []),
      ...(options.auditLog === undefined ? [] : [`--audit-log-path=${options.auditLog}`]),
    ]
    const { name = 'Portcullis', place = 'proxy' } = options
    // As users start it: with the flags of Node that it has there.
    const program = options.program ?? join(root, 'bin/portcullis')
    const { nodeArgs } = options
    const env = { ...options.env, ...(nodeArgs === undefined ? {} : { NODE_OPTIONS: nodeArgs.join(' ') }) }
    const before = [...Object.entries(env).map(([name, value]) => `${name}=${value}`), program]
    const output = options.logged === true ? this.material.path(`access-${port}.log`) : undefined
    const server = await startServer({
      name,
      port,
      command: 'env',
      args: [...before, ...args],
      place,
      cwd: root,
      startSeconds: START_SECONDS,
      output,
    })
    const gateway = { ...server, admin, control, dataDir }
    if (options.embedded === true && options.port === undefined) {
      await ready(gateway)
      const session = connectControl(gateway)
      await createObjects(session, this.material.objects(options))
      session.destroy()
      // A write is answered before it is in force.
      while ((await clustersOf(gateway)) < 1 + (options.otherClusters ?? 0)) await sleep(HEALTHY_AGAIN_MS)
    }
    if (options.untouched === true) await ready(gateway)
    else await this.#healthy(gateway, options.keys)
    const servesSinceMs = performance.now()
    const clusters = options.otherClusters === undefined ? 1 : await clustersOf(gateway)
    const wanted = 1 + (options.otherClusters ?? 0)
    if (clusters !== wanted) throw new Error(`${name} has ${clusters} of ${wanted} clusters`)
    return { ...gateway, servesSinceMs }
  }

  /** Waits until requests are answered: probes of thousands of clusters at once may cost the upstream its first one. */
  async #healthy(gateway: Server, keys?: Keys): Promise<void> {
    const deadline = performance.now() + HEALTHY_SECONDS * 1000
    for (;;) {
      try {
        await this.load(gateway, { seconds: 0.01, connections: 1, warmUp: 0, tolerated: 0, ...(keys && { keys }) })
        return
      } catch (error) {
        if (performance.now() > deadline) throw error
      }
      await sleep(HEALTHY_AGAIN_MS)
    }
  }

  /** A client of `target` in one of its modes (client-go/main.go). */
  client(target: Server, mode: string, flags: readonly string[], options: ClientOptions = {}): Client {
    const { identity = 'x509', place = 'load' } = options
    const { client, clientKey } = this.material.certificates(options.keys)
    const credentials = { x509: [`-cert=${client}`, `-key=${clientKey}`], token: [`-token=${TOKEN}`], tokens: [] }
    return new Client(
      this.#client,
      [mode, `-port=${target.port}`, `-host=${HOST}`, ...credentials[identity], ...flags],
      place,
    )
  }

  /** GETs of the small object. Throws when one fails. */
  async load(target: Server, options: LoadOptions): Promise<LoadSample> {
    const { connections = 4, streams = 16, rate = 0, seconds = 1.5 } = options
    const flags = [`-connections=${connections}`, `-streams=${streams}`, `-path=${options.path ?? SMALL_PATH}`]
    flags.push(`-rate=${rate}`, `-seconds=${seconds}`, `-warm-up=${options.warmUp ?? CONNECTION_WARM_UP}`)
    flags.push(`-tolerated=${options.tolerated ?? this.tolerated}`, `-requests=${options.requests ?? 0}`)
    flags.push(`-method=${options.method ?? 'GET'}`, `-body=${options.body ?? 0}`)
    if (options.http1 === true) flags.push('-http1')
    if (options.tokens !== undefined) flags.push(`-tokens=${options.tokens}`)
    const client = this.client(target, 'load', flags, options)
    try {
      await client.next()
      await options.when
      const before = cpuSeconds(target.pid)
      const clientBefore = cpuSeconds(client.pid)
      client.go()
      const line = await client.next<LoadLine>()
      const used = cpuSeconds(target.pid) - before
      return {
        ...line,
        cpuMicros: (used * 1e6) / line.requests,
        cores: used / line.seconds,
        p50: line.p50Micros / 1000,
        p99: line.p99Micros / 1000,
        first: line.firstMicros / 1000,
        clientSeconds: cpuSeconds(client.pid) - clientBefore,
      }
    } catch (error) {
      throw new Error(`${target.name}: ${error instanceof Error ? error.message : error}`, { cause: error })
    } finally {
      await client.stop()
    }
  }

  /**
   * A JavaScript program has to be compiled before it is measured, and again for a load of another shape: one request in each turn of the
   * event loop takes other branches than sixty. @param shape default: full load
   */
  async warmUp(
    target: Server,
    identities: readonly Identity[] = ['x509'],
    shape: Pick<LoadOptions, 'rate' | 'connections' | 'http1'> = {},
  ): Promise<void> {
    for (const identity of identities)
      await this.load(target, { ...shape, identity, seconds: WARM_UP_SECONDS, tolerated: 1 })
  }
}

/** Samples by name, in the order of their first. */
export class Samples<T> {
  readonly #samples = new Map<string, T[]>()

  add(name: string, sample: T): void {
    const list = this.#samples.get(name)
    if (list === undefined) this.#samples.set(name, [sample])
    else list.push(sample)
  }

  get names(): string[] {
    return [...this.#samples.keys()]
  }

  /** NaN without samples. */
  median(name: string, value: (sample: T) => number): number {
    return this.quantile(name, 0.5, value)
  }

  /** @param part 0 to 1 */
  quantile(name: string, part: number, value: (sample: T) => number): number {
    const sorted = (this.#samples.get(name) ?? []).map(value).sort((a, b) => a - b)
    return sorted[Math.floor(sorted.length * part)] ?? Number.NaN
  }

  /** Median of one divided by the median of the other. */
  ratio(name: string, to: string, value: (sample: T) => number): number {
    return this.median(name, value) / this.median(to, value)
  }
}
