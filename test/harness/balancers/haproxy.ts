// HAProxy as a TCP load balancer that asks /readyz of each gateway: what people put in front of several of them.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { withFreePorts } from '../ports.ts'
import { startProcess } from '../process.ts'

export interface BalancedServer {
  readonly name: string
  readonly port: number
  /** Where it answers /readyz without TLS. */
  readonly healthPort: number
}

export interface Balancer {
  readonly port: number
  /** What its health check says of a server: `UP`, `DOWN`, `UP 1/2` on the way down ... */
  stateOf(name: string): Promise<string>
  stop(): Promise<void>
}

/**
 * A connection that is refused is not tried elsewhere: it is the client's failure. A server that does not answer a check at once is not down: the machine
 * may be busy, and with both down, clients would fail.
 */
export function startBalancer(servers: readonly BalancedServer[]): Promise<Balancer> {
  const dir = mkdtempSync(join(tmpdir(), 'portcullis-haproxy-'))
  return withFreePorts(2, async ([port = 0, statsPort = 0]) => {
    const file = join(dir, 'haproxy.cfg')
    writeFileSync(file, configOf(servers, port, statsPort))
    const haproxy = await startProcess({
      name: 'haproxy',
      command: 'haproxy',
      args: ['-db', '-f', file],
      logFile: join(dir, 'haproxy.log'),
      ready: async () => (await states(statsPort)).size === servers.length,
    })
    return {
      port,
      stateOf: async (name) => (await states(statsPort)).get(name) ?? '',
      async stop() {
        await haproxy.stop()
        rmSync(dir, { recursive: true, force: true })
      },
    }
  })
}

function configOf(servers: readonly BalancedServer[], port: number, statsPort: number): string {
  const lines = servers.map(
    ({ name, port: to, healthPort }) =>
      `  server ${name} 127.0.0.1:${to} check port ${healthPort} inter 100ms fall 2 rise 1`,
  )
  return `
defaults
  mode tcp
  retries 0
  timeout connect 10s
  timeout check 30s
  timeout client 1h
  timeout server 1h
frontend clients
  bind 127.0.0.1:${port}
  default_backend gateways
backend gateways
  balance leastconn
  option httpchk GET /readyz
${lines.join('\n')}
listen stats
  mode http
  bind 127.0.0.1:${statsPort}
  stats enable
  stats uri /
`
}

async function states(port: number): Promise<ReadonlyMap<string, string>> {
  const text = await (await fetch(`http://127.0.0.1:${port}/;csv`)).text()
  const [head = '', ...rows] = text.split('\n')
  const columns = head.replace('# ', '').split(',')
  const [proxy, name, status] = ['pxname', 'svname', 'status'].map((column) => columns.indexOf(column))
  return new Map(
    rows
      .map((row) => row.split(','))
      .filter((row) => row[proxy ?? 0] === 'gateways' && row[name ?? 1] !== 'BACKEND')
      .map((row) => [row[name ?? 1] ?? '', row[status ?? 17] ?? '']),
  )
}
