// An upstream for upgraded connections: HTTP/1.1 only, answers 101 to every upgrade and sends back what it gets.

import type { ServerResponse } from 'node:http'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import type { Duplex } from 'node:stream'
import { stubServing } from './stub-upstream.ts'

export interface UpgradeUpstream {
  readonly url: string
  readonly caPem: string
  /** Upgraded connections that are open. */
  readonly open: ReadonlySet<Duplex>
  /** Whether upgrades are answered; false = they wait for ever. */
  answering: boolean
  /** While set, other requests (health checks) wait in it. */
  held: ServerResponse[] | undefined
  stop(): Promise<void>
}

export async function startUpgradeUpstream(): Promise<UpgradeUpstream> {
  const { ca, pair } = stubServing()
  const open = new Set<Duplex>()
  const sockets = new Set<Duplex>()
  const server = createServer({ cert: pair.certPem, key: pair.keyPem, ALPNProtocols: ['http/1.1'] }, (_, response) => {
    if (upstream.held === undefined) response.end('ok')
    else upstream.held.push(response)
  })
  server.on('secureConnection', (socket: Duplex) => {
    sockets.add(socket)
    socket.on('error', () => undefined)
    socket.on('close', () => sockets.delete(socket))
  })
  const upstream: UpgradeUpstream = {
    url: '',
    caPem: ca.certPem,
    open,
    answering: true,
    held: undefined,
    stop: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve())
        for (const socket of sockets) socket.destroy()
      }),
  }
  server.on('upgrade', (_request, socket: Duplex) => {
    open.add(socket)
    socket.on('close', () => open.delete(socket))
    if (!upstream.answering) return
    socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n')
    socket.pipe(socket)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return Object.assign(upstream, { url: `https://127.0.0.1:${(server.address() as AddressInfo).port}` })
}
