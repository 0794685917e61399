// A load balancer of layer 4 for tests: puts given bytes in front of each connection, and passes on all others.

import { connect, createServer, type Socket } from 'node:net'

export interface BalancerOptions {
  /** Where connections go. */
  readonly port: number
  /** What comes first. */
  readonly header: Buffer | string
  /** together (default): in one segment with what the client sends first; bytes: one by one. */
  readonly how?: 'together' | 'before' | 'bytes'
  /** From which of this machine's addresses. Default 127.0.0.1. */
  readonly localAddress?: string
}

export interface Balancer {
  readonly port: number
  stop(): void
}

export async function startBalancer(options: BalancerOptions): Promise<Balancer> {
  const sockets = new Set<Socket>()
  const server = createServer((client) => {
    const upstream = connect({
      host: '127.0.0.1',
      port: options.port,
      localAddress: options.localAddress ?? '127.0.0.1',
    })
    for (const socket of [client, upstream]) {
      socket.setNoDelay(true)
      sockets.add(socket)
      socket.on('error', () => undefined)
    }
    client.on('close', () => upstream.destroy())
    upstream.on('close', () => client.destroy())
    void passOn(client, upstream, options)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', () => resolve()))
  const address = server.address()
  return {
    port: typeof address === 'object' && address !== null ? address.port : 0,
    stop() {
      server.close()
      for (const socket of sockets) socket.destroy()
    },
  }
}

async function passOn(client: Socket, upstream: Socket, { header, how = 'together' }: BalancerOptions): Promise<void> {
  upstream.pipe(client)
  const bytes = Buffer.from(header)
  if (how === 'bytes') {
    for (const at of bytes.keys()) {
      upstream.write(bytes.subarray(at, at + 1))
      // Lets it go out before the next one is written.
      await new Promise((resolve) => setImmediate(resolve))
    }
  } else if (how === 'before') upstream.write(bytes)
  if (how !== 'together') {
    client.pipe(upstream)
    return
  }
  client.once('data', (first) => {
    upstream.write(Buffer.concat([bytes, first]))
    client.pipe(upstream)
  })
}
