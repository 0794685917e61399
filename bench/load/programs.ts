// The programs of a load run: an upstream that serves one small file, HAProxy and Portcullis in front of it, all on loopback.

import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { createCA, issueCertificate } from '../../src/io/pki.ts'

export const HOST = 'bench.example.com'
/** A GET of one small object. */
export const TARGET = '/api/v1/namespaces/default/configmaps/small'
export const TOKEN = 'bench-token'
const OBJECT_BYTES = 1024
const REVIEW_PATH = '/apis/authentication.k8s.io/v1/tokenreviews'
const START_TIMEOUT_MS = 20_000

export interface Program {
  readonly name: string
  readonly pid: number
  readonly port: number
}

/** Everything of one run; `stop` ends each process by its id. */
export class Programs {
  readonly dir: string = mkdtempSync(join(tmpdir(), 'portcullis-bench-'))
  readonly #children: ChildProcess[] = []
  readonly #ca = createCA({ commonName: 'bench CA' })

  constructor() {
    const names = { dnsNames: [HOST, 'localhost'], ipAddresses: ['127.0.0.1'] }
    const pair = issueCertificate(this.#ca, { commonName: HOST, usage: 'server', ...names })
    this.#write('ca.pem', this.#ca.certPem)
    this.#write('server.pem', pair.certPem)
    this.#write('server.key', pair.keyPem)
    this.#write('both.pem', pair.certPem + pair.keyPem)
    this.#write(`www${TARGET}`, 'x'.repeat(OBJECT_BYTES))
    this.#write('www/readyz', 'ok')
    const user = { username: 'bench', uid: '1', groups: ['one', 'two', 'three'], extra: {} }
    this.#write(`www${REVIEW_PATH}`, JSON.stringify({ status: { authenticated: true, user } }))
  }

  #write(name: string, text: string): void {
    const file = join(this.dir, name)
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, text)
  }

  async #start(name: string, port: number, command: string, args: readonly string[]): Promise<Program> {
    const child = spawn(command, args, { stdio: ['ignore', 'ignore', 'pipe'] })
    this.#children.push(child)
    let errors = ''
    child.stderr?.on('data', (chunk: Buffer) => {
      errors = (errors + chunk.toString()).slice(-2000)
    })
    const deadline = performance.now() + START_TIMEOUT_MS
    while (!accepts(port)) {
      if (child.exitCode !== null || performance.now() > deadline) throw new Error(`${name} did not start: ${errors}`)
      await sleep(50)
    }
    return { name, pid: child.pid ?? 0, port }
  }

  /** nghttpd: one thread, far faster than any proxy here. */
  async upstream(): Promise<Program> {
    const port = await freePort()
    const args = ['-n', '1', '-d', this.#path('www'), String(port), this.#path('server.key'), this.#path('server.pem')]
    return this.#start('direct', port, 'nghttpd', args)
  }

  /** HTTP/2 and TLS on both sides, two header fields set: what a proxy in C does at the least. */
  async haproxy(upstream: number): Promise<Program> {
    const port = await freePort()
    this.#write(
      'haproxy.cfg',
      `global
  nbthread 1
  maxconn 8000
defaults
  mode http
  timeout connect 5s
  timeout client 1h
  timeout server 1h
frontend f
  bind 127.0.0.1:${port} ssl crt ${this.#path('both.pem')} alpn h2,http/1.1
  http-request set-header Impersonate-User bench
  http-request set-header Impersonate-Group one
  default_backend b
backend b
  server s 127.0.0.1:${upstream} ssl verify none alpn h2
`,
    )
    return this.#start('HAProxy', port, 'haproxy', ['-db', '-f', this.#path('haproxy.cfg')])
  }

  /** The full path: token identity from the cache, twenty policies, token bucket, impersonation, metrics; access log off. */
  async portcullis(upstream: number): Promise<Program> {
    const port = await freePort()
    const admin = await freePort()
    this.#write('config/bench.yaml', JSON.stringify(this.#object(upstream)))
    const main = join(import.meta.dirname, '../../src/main.ts')
    return this.#start('Portcullis', port, process.execPath, [
      main,
      'serve',
      '--source=files',
      `--config-dir=${this.#path('config')}`,
      `--listen=127.0.0.1:${port}`,
      `--admin-listen=127.0.0.1:${admin}`,
      `--data-dir=${this.#path('data')}`,
      '--access-log=false',
    ])
  }

  #object(upstream: number): object {
    const base64 = (name: string): string => readFileSync(this.#path(name)).toString('base64')
    const misses = Array.from({ length: 19 }, (_, i) => ({
      rules: [{ verbs: ['get'], apiGroups: ['apps'], resources: [`kind${i}`], users: [`user${i}`] }],
    }))
    const last = { flowControlSchemaName: 'all', rules: [{ verbs: ['*'], apiGroups: ['*'], resources: ['*'] }] }
    return {
      apiVersion: 'proxy.kubegateway.io/v1alpha1',
      kind: 'UpstreamCluster',
      metadata: { name: HOST },
      spec: {
        servers: [{ endpoint: `https://127.0.0.1:${upstream}` }],
        clientConfig: { bearerToken: Buffer.from('gateway').toString('base64'), caData: base64('ca.pem') },
        secureServing: { certData: base64('server.pem'), keyData: base64('server.key') },
        authentication: { tokenSuccessTTLSeconds: 3600 },
        flowControl: { flowControlSchemas: [{ name: 'all', tokenBucket: { qps: 1_000_000, burst: 1_000_000 } }] },
        dispatchPolicies: [...misses, last],
      },
    }
  }

  /** An upstream that answers every request with a watch that never ends. */
  async watchUpstream(): Promise<Program> {
    const port = await freePort()
    const script = join(import.meta.dirname, 'watch-upstream.ts')
    return this.#start('watch upstream', port, process.execPath, [script, this.dir, String(port)])
  }

  #path(name: string): string {
    return join(this.dir, name)
  }

  /** Ends one program. */
  end(program: Program): void {
    this.#children.find((child) => child.pid === program.pid)?.kill('SIGKILL')
  }

  stop(): void {
    for (const child of this.#children) child.kill('SIGKILL')
    rmSync(this.dir, { recursive: true, force: true })
  }
}

function accepts(port: number): boolean {
  const hex = port.toString(16).toUpperCase().padStart(4, '0')
  // State 0A is LISTEN (proc(5)).
  return readFileSync('/proc/net/tcp', 'utf8').includes(`:${hex} 00000000:0000 0A`)
}

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer()
    server.once('error', reject)
    server.listen(0, '127.0.0.1', () => {
      const address = server.address()
      server.close(() => resolve(typeof address === 'object' && address !== null ? address.port : 0))
    })
  })
}

const TICKS_PER_SECOND = Number(execFileSync('getconf', ['CLK_TCK']).toString())

/** CPU seconds used so far, user and system. */
export function cpuSeconds(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND
}

/** Resident memory, bytes. */
export function residentBytes(pid: number): number {
  const line = /^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))
  return Number(line?.[1] ?? 0) * 1024
}
