// A redis-server of the machine, on a port of its own and with nothing on disk.

import { mkdtempSync, rmSync } from 'node:fs'
import { createConnection } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { withFreePorts } from '../ports.ts'
import { type RunningProcess, startProcess } from '../process.ts'

export interface TestRedis {
  readonly port: number
  readonly url: string
  /** Ends it as a crash does: what it knew is lost. */
  kill(): Promise<void>
  /** Stops it from answering, with its connections open; `go` lets it go on. */
  freeze(): void
  go(): void
  /** Starts it again on the same port, after `kill`. */
  restart(): Promise<void>
  stop(): Promise<void>
}

export interface RedisServerOptions {
  readonly password?: string
  /** Appended to its command line. */
  readonly args?: readonly string[]
  /** It speaks TLS only, and `args` say with which files. */
  readonly tls?: boolean
}

export async function startRedis(options: RedisServerOptions = {}): Promise<TestRedis> {
  const dir = mkdtempSync(join(tmpdir(), 'portcullis-redis-'))
  const start = (port: number): Promise<RunningProcess> => startServer(port, dir, options)
  const { port, first } = await withFreePorts(1, async ([port = 0]) => ({ port, first: await start(port) }))
  let server = first
  return {
    port,
    url: `${options.tls === true ? 'rediss' : 'redis'}://127.0.0.1:${port}`,
    kill: async () => void (await server.stop(0)),
    freeze: () => server.signal('SIGSTOP'),
    go: () => server.signal('SIGCONT'),
    restart: async () => {
      server = await start(port)
    },
    stop: async () => {
      server.signal('SIGCONT')
      await server.stop(0)
      rmSync(dir, { recursive: true, force: true })
    },
  }
}

function startServer(
  port: number,
  dir: string,
  { password, args = [], tls = false }: RedisServerOptions,
): Promise<RunningProcess> {
  const listening = tls ? ['--port', '0', '--tls-port', String(port)] : ['--port', String(port)]
  const secret = password === undefined ? [] : ['--requirepass', password]
  const nothingKept = ['--save', '', '--appendonly', 'no', '--dir', dir]
  return startProcess({
    name: 'redis-server',
    command: 'redis-server',
    args: ['--bind', '127.0.0.1', ...listening, ...nothingKept, ...secret, ...args],
    logFile: join(dir, 'redis.log'),
    ready: () => connects(port),
  })
}

function connects(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = createConnection({ port, host: '127.0.0.1' })
    socket.once('connect', () => {
      socket.destroy()
      resolve(true)
    })
    socket.once('error', () => resolve(false))
  })
}
