// Several redis-servers of the machine: a master with replicas and Sentinels, and a Redis Cluster.

import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { withFreePorts } from '../ports.ts'
import { type RunningProcess, startProcess } from '../process.ts'
import { waitFor } from '../wait.ts'

const run = promisify(execFile)

export interface RedisServer {
  readonly port: number
  kill(): Promise<void>
  freeze(): void
  go(): void
  /** A command, as redis-cli takes it; what Redis answers. */
  cli(...args: readonly string[]): Promise<string>
}

export interface TestSentinels {
  /** The first one is the master at the start. */
  readonly servers: readonly RedisServer[]
  readonly sentinels: readonly RedisServer[]
  /** The server at the address that Sentinels give out. */
  master(): Promise<RedisServer>
  readonly url: string
  stop(): Promise<void>
}

export interface TestCluster {
  /** Three masters, then their replicas in any order: redis-cli moves them about when all are on one machine. */
  readonly nodes: readonly RedisServer[]
  /** The master of the keys of the gateway. */
  owner(): Promise<RedisServer>
  replicaOf(master: RedisServer): Promise<RedisServer>
  readonly url: string
  stop(): Promise<void>
}

export interface TopologyOptions {
  /** Appended to the command line of each server. */
  readonly args?: readonly string[]
  /** Appended to the configuration of each Sentinel. */
  readonly sentinelLines?: readonly string[]
  /** What redis-cli must be given to be let in. */
  readonly cli?: readonly string[]
  /** All speak TLS only, and `args` and `sentinelLines` say with which files. */
  readonly tls?: boolean
}

const NOTHING_KEPT = ['--save', '', '--appendonly', 'no']
/** So soon a silent master is considered down. */
const DOWN_MS = 1_000

export const MASTER_NAME = 'limits'

/** One master, two replicas, three Sentinels. */
export async function startSentinels(options: TopologyOptions = {}): Promise<TestSentinels> {
  const all = new Processes('sentinel', options)
  try {
    const servers: RedisServer[] = []
    for (let i = 0; i < 3; i++) {
      const following = i === 0 ? [] : ['--replicaof', '127.0.0.1', String(servers[0]?.port)]
      servers.push(await all.start((port) => [...all.listening(port), ...NOTHING_KEPT, ...following]))
    }
    const [first] = servers
    if (first === undefined) throw new Error('no server')
    await waitFor('replicas', async () => (await first.cli('info', 'replication')).match(/state=online/g)?.length === 2)
    const sentinels: RedisServer[] = []
    for (let i = 0; i < 3; i++) {
      sentinels.push(
        await all.start((port) => [all.sentinelFile(port, first.port), '--sentinel', ...all.listening(port)]),
      )
    }
    const know = (one: RedisServer): Promise<boolean> =>
      one.cli('sentinel', 'ckquorum', MASTER_NAME).then(
        (text) => text.startsWith('OK 3'),
        () => false,
      )
    const seen = (one: RedisServer): Promise<boolean> =>
      one.cli('sentinel', 'replicas', MASTER_NAME).then((text) => (text.match(/^runid$/gm)?.length ?? 0) === 2)
    await waitFor('Sentinels to know each other', async () => (await Promise.all(sentinels.map(know))).every(Boolean))
    await waitFor('Sentinels to know replicas', async () => (await Promise.all(sentinels.map(seen))).every(Boolean))
    const places = sentinels.map(({ port }) => `127.0.0.1:${port}`).join(',')
    return {
      servers,
      sentinels,
      url: `${options.tls === true ? 'rediss' : 'redis'}+sentinel://${places}/${MASTER_NAME}`,
      master: async () => {
        const answer = await sentinels[0]?.cli('sentinel', 'get-master-addr-by-name', MASTER_NAME)
        return one(servers, Number(answer?.split('\n')[1]))
      },
      stop: () => all.stop(),
    }
  } catch (error) {
    await all.stop()
    throw error
  }
}

/** Three masters with a replica each. */
export async function startCluster(options: TopologyOptions = {}): Promise<TestCluster> {
  const all = new Processes('cluster', options)
  const clustered = (port: number, busPort: number): string[] => [
    ...all.listening(port),
    ...NOTHING_KEPT,
    ...['--cluster-enabled', 'yes', '--cluster-config-file', `nodes-${port}.conf`],
    ...['--cluster-node-timeout', String(DOWN_MS), '--cluster-port', String(busPort)],
  ]
  try {
    const nodes: RedisServer[] = []
    for (let i = 0; i < 6; i++) nodes.push(await all.start(clustered))
    const places = nodes.map(({ port }) => `127.0.0.1:${port}`)
    const [first] = nodes
    if (first === undefined) throw new Error('no node')
    await first.cli('--cluster', 'create', ...places, '--cluster-replicas', '1', '--cluster-yes')
    const complete = async (node: RedisServer): Promise<boolean> =>
      /cluster_state:ok[\s\S]*cluster_known_nodes:6/.test(await node.cli('cluster', 'info')) &&
      (await node.cli('cluster', 'nodes')).match(/slave /g)?.length === 3
    await waitFor('the cluster', async () => (await Promise.all(nodes.map(complete))).every(Boolean))
    await waitFor('replicas in step', async () =>
      (await Promise.all(nodes.slice(3).map((node) => node.cli('info', 'replication')))).every((text) =>
        text.includes('master_link_status:up'),
      ),
    )
    return {
      nodes,
      url: `${options.tls === true ? 'rediss' : 'redis'}+cluster://${places.slice(0, 2).join(',')}`,
      owner: async () => {
        const slot = (await first.cli('cluster', 'keyslot', '{portcullis}')).trim()
        const living = nodes.find((node) => node !== undefined && all.runs(node)) ?? first
        return one(nodes, ownerOf(await living.cli('cluster', 'nodes'), Number(slot)))
      },
      replicaOf: async (master) => {
        const id = (await master.cli('cluster', 'myid')).trim()
        const port = /^\S+ [^ ]*:(\d+)@/.exec(await master.cli('cluster', 'replicas', id))?.[1]
        return one(nodes, Number(port))
      },
      stop: () => all.stop(),
    }
  } catch (error) {
    await all.stop()
    throw error
  }
}

function ownerOf(nodes: string, slot: number): number {
  for (const line of nodes.split('\n')) {
    const [, address = '', flags = '', , , , , , ...ranges] = line.split(' ')
    if (!flags.includes('master') || flags.includes('fail')) continue
    for (const range of ranges) {
      const [from = '', to = from] = range.split('-')
      if (slot >= Number(from) && slot <= Number(to)) return Number(/:(\d+)@/.exec(address)?.[1])
    }
  }
  return 0
}

function one(servers: readonly RedisServer[], port: number): RedisServer {
  const found = servers.find((server) => server.port === port)
  if (found === undefined) throw new Error(`no server has the port ${port}`)
  return found
}

class Processes {
  readonly #dir: string
  readonly #options: TopologyOptions
  readonly #running = new Map<number, RunningProcess>()
  readonly #frozen = new Set<number>()

  constructor(name: string, options: TopologyOptions) {
    this.#dir = mkdtempSync(join(tmpdir(), `portcullis-redis-${name}-`))
    this.#options = options
  }

  listening(port: number): string[] {
    const { tls = false, args = [] } = this.#options
    const ports = tls ? ['--port', '0', '--tls-port', String(port)] : ['--port', String(port)]
    const inside = tls ? ['--tls-replication', 'yes', '--tls-cluster', 'yes'] : []
    return [...ports, ...inside, '--bind', '127.0.0.1', '--dir', this.#dir, ...args]
  }

  sentinelFile(port: number, masterPort: number): string {
    const file = join(this.#dir, `sentinel-${port}.conf`)
    const lines = [
      `sentinel monitor ${MASTER_NAME} 127.0.0.1 ${masterPort} 2`,
      `sentinel down-after-milliseconds ${MASTER_NAME} ${DOWN_MS}`,
      `sentinel failover-timeout ${MASTER_NAME} 10000`,
      ...(this.#options.sentinelLines ?? []),
    ]
    writeFileSync(file, `${lines.join('\n')}\n`)
    return file
  }

  runs(server: RedisServer): boolean {
    return this.#running.get(server.port)?.running === true && !this.#frozen.has(server.port)
  }

  async start(argsOf: (port: number, secondPort: number) => readonly string[]): Promise<RedisServer> {
    return withFreePorts(2, async ([port = 0, secondPort = 0]) => {
      const cli = async (...args: readonly string[]): Promise<string> =>
        (await run('redis-cli', ['-e', '-p', String(port), ...(this.#options.cli ?? []), ...args])).stdout.trim()
      const running = await startProcess({
        name: 'redis-server',
        command: 'redis-server',
        args: argsOf(port, secondPort),
        logFile: join(this.#dir, `redis-${port}.log`),
        ready: async () => (await cli('ping')).includes('PONG'),
      })
      this.#running.set(port, running)
      return {
        port,
        cli,
        kill: async () => void (await running.stop(0)),
        freeze: () => {
          this.#frozen.add(port)
          running.signal('SIGSTOP')
        },
        go: () => {
          this.#frozen.delete(port)
          running.signal('SIGCONT')
        },
      }
    })
  }

  async stop(): Promise<void> {
    for (const process of this.#running.values()) process.signal('SIGCONT')
    await Promise.all([...this.#running.values()].map((process) => process.stop(0)))
    rmSync(this.#dir, { recursive: true, force: true })
  }
}
