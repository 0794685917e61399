// The real gateway as a process, with its own API server: what an administrator has in hand (kubectl, the commands of
// portcullis, plain HTTPS), and connections of clients, enough of them that every thread of the gateway has some.

import { execFile } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import type { ClientHttp2Session } from 'node:http2'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parse } from 'yaml'
import type { KeyPair } from '../../../src/pki/io/pki.ts'
import { ControlClient, type Json } from '../clients/control-client.ts'
import { h2Connect, h2Request, type Response } from '../clients/h2-client.ts'
import { type KubectlResult, kubectl } from '../kubectl/kubectl.ts'
import { guarded } from '../process.ts'
import { MAIN } from '../program.ts'
import { waitFor } from '../wait.ts'
import type { TestControl } from './control.ts'
import { type GatewayOptions, startGateway, type TestGateway } from './gateway.ts'

export const EMBEDDED_FLAGS: readonly string[] = ['--source=embedded', '--control-listen=127.0.0.1:CONTROL']
export const UC_PATH = '/apis/proxy.kubegateway.io/v1alpha1/upstreamclusters'
/** Chance gives each of a few threads one of these, but for once in many thousands of runs. */
const CONNECTIONS = 16

export interface EmbeddedGateway {
  readonly gateway: TestGateway
  /** Outlives a restart; `stop` removes it. */
  readonly dataDir: string
  /** The kubeconfig of the first administrator, as the gateway wrote it. */
  readonly kubeconfig: string
  readonly caPem: string
  /** As the first administrator. */
  readonly admin: ControlClient
  /** A client of another user; without a credential: anonymous. Closed by `stop`. */
  clientOf(user: { readonly cert?: KeyPair; readonly token?: string }): ControlClient
  /** As the first administrator, unless told another kubeconfig. */
  kubectl(args: readonly string[], options?: { kubeconfig?: string; stdin?: string }): Promise<KubectlResult>
  /** As `kubectl`; throws when it fails. What it printed. */
  succeed(args: readonly string[], stdin?: string): Promise<string>
  /** `kubectl apply` of these objects. */
  apply(...objects: readonly object[]): Promise<string>
  /** Changes a cluster, by a merge patch over HTTP. */
  patch(cluster: string, change: object): Promise<Json>
  /** Ends it so, and starts it again with what it has stored. Its ports are others. @param between while it does not run */
  restart(signal?: NodeJS.Signals, between?: () => void | Promise<void>): Promise<void>
  stop(): Promise<void>
}

export interface CliResult {
  readonly code: number
  readonly stdout: string
  readonly stderr: string
}

/** A command of portcullis as a process of its own. Never throws on its failure. */
export function runCli(args: readonly string[]): Promise<CliResult> {
  const [command, all] = guarded(process.execPath, [MAIN, ...args])
  const env = { ...process.env }
  for (const name of ['NODE_TEST_CONTEXT', 'NODE_OPTIONS', 'NODE_V8_COVERAGE', 'KUBECONFIG']) delete env[name]
  return new Promise((resolve) => {
    execFile(command, all, { env, timeout: 60_000 }, (error, stdout, stderr) => {
      resolve({ code: error === null ? 0 : typeof error.code === 'number' ? error.code : -1, stdout, stderr })
    })
  })
}

export async function startEmbedded(options: Partial<GatewayOptions> = {}): Promise<EmbeddedGateway> {
  const dataDir = mkdtempSync(join(tmpdir(), 'portcullis-embedded-'))
  const home = mkdtempSync(join(tmpdir(), 'portcullis-embedded-home-'))
  const start = (): Promise<TestGateway> =>
    startGateway({ clusters: [], source: EMBEDDED_FLAGS, ...options, dataDir }).catch((error: unknown) => {
      rmSync(dataDir, { recursive: true, force: true })
      rmSync(home, { recursive: true, force: true })
      throw error
    })
  const kubeconfig = join(dataDir, 'control/pki/admin.kubeconfig')
  const clients: ControlClient[] = []
  const closeClients = (): void => {
    for (const client of clients.splice(0)) client.close()
  }
  let gateway = await start()
  const readAdmin = (): { caPem: string; cert: KeyPair } => {
    const { clusters, users } = parse(readFileSync(kubeconfig, 'utf8'))
    const { user } = users[0]
    return {
      caPem: decoded(clusters[0].cluster['certificate-authority-data']),
      cert: { certPem: decoded(user['client-certificate-data']), keyPem: decoded(user['client-key-data']) },
    }
  }
  const { caPem, cert } = readAdmin()
  const clientOf: EmbeddedGateway['clientOf'] = (user) => {
    // These two are all that it asks for.
    const client = new ControlClient({ port: gateway.controlPort, caPem } as TestControl, user)
    clients.push(client)
    return client
  }
  let admin = clientOf({ cert })
  const run: EmbeddedGateway['kubectl'] = (args, { kubeconfig: other = kubeconfig, stdin } = {}) =>
    kubectl(args, { kubeconfig: other, home, ...(stdin !== undefined && { stdin }) })
  const succeed: EmbeddedGateway['succeed'] = async (args, stdin) => {
    const result = await run(args, stdin === undefined ? {} : { stdin })
    if (result.code !== 0) throw new Error(`kubectl ${args.join(' ')}: ${result.stdout}${result.stderr}`)
    return result.stdout
  }
  return {
    get gateway() {
      return gateway
    },
    dataDir,
    kubeconfig,
    caPem,
    get admin() {
      return admin
    },
    clientOf,
    kubectl: run,
    succeed,
    apply: (...objects) =>
      succeed(['apply', '-f', '-'], JSON.stringify({ apiVersion: 'v1', kind: 'List', items: objects })),
    async patch(cluster, change) {
      const { code, json, text } = await admin.mergePatch(`${UC_PATH}/${cluster}`, change)
      if (code !== 200) throw new Error(`${code} ${text}`)
      return json
    },
    async restart(signal = 'SIGTERM', between = () => undefined) {
      closeClients()
      await gateway.stop(signal)
      await between()
      gateway = await start()
      admin = clientOf({ cert })
    },
    async stop() {
      closeClients()
      await gateway.stop()
      rmSync(dataDir, { recursive: true, force: true })
      rmSync(home, { recursive: true, force: true })
    },
  }
}

function decoded(base64: string): string {
  return Buffer.from(base64, 'base64').toString()
}

/** Connections of one client, to all threads of a gateway. */
export class ClientConnections {
  readonly #gateway: () => TestGateway
  readonly #host: string
  readonly #certificate: KeyPair | undefined
  #sessions: ClientHttp2Session[] = []

  constructor(gateway: () => TestGateway, host: string, certificate?: KeyPair) {
    this.#gateway = gateway
    this.#host = host
    this.#certificate = certificate
  }

  /** Those that the gateway has ended are reopened. */
  sessions(): readonly ClientHttp2Session[] {
    const { port } = this.#gateway()
    const certificate = this.#certificate
    for (let i = 0; i < CONNECTIONS; i++) {
      const known = this.#sessions[i]
      if (known !== undefined && !known.closed && !known.destroyed) continue
      this.#sessions[i] = h2Connect({ port, serverName: this.#host, ...(certificate !== undefined && { certificate }) })
    }
    return this.#sessions
  }

  /** The same request on each. */
  ask(head: readonly string[] = []): Promise<Response[]> {
    const complete = head.includes(':authority') ? head : [':authority', this.#host, ...head]
    return Promise.all(this.sessions().map((session) => h2Request(session, complete)))
  }

  /** Resolves once every connection gets such an answer. */
  everywhere(what: string, holds: (answer: Response) => boolean, head: readonly string[] = []): Promise<Response[]> {
    let last: readonly Response[] = []
    return waitFor(what, async () => {
      const answers = await this.ask(head)
      last = answers
      return answers.every(holds) && answers
    }).catch((error: unknown) => {
      const got = new Set(last.map(({ status, body }) => `${status} ${body.toString().slice(0, 300)}`))
      throw new Error(`${error instanceof Error ? error.message : error}; the last answers: ${[...got].join('; ')}`)
    })
  }

  everywhereStatus(status: number, head: readonly string[] = []): Promise<Response[]> {
    return this.everywhere(`${status} on all connections`, (answer) => answer.status === status, head)
  }

  close(): void {
    for (const session of this.#sessions.splice(0)) session.destroy()
  }
}
