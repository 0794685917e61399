// A TCP proxy on this machine whose cable a test can pull: cut, mended, or frozen (connections stay, nothing passes).

import { connect, createServer, type Socket } from 'node:net'

export interface SeverableProxy {
  readonly port: number
  /** Connections that were accepted so far. */
  readonly accepted: number
  /** Resets all connections, and new ones at once. */
  cut(): void
  /** From now on nothing passes on the connections that there are; new ones work. */
  freeze(): void
  mend(): void
  stop(): Promise<void>
}

/** @param port on 127.0.0.1 to which it leads */
export function startSeverableProxy(port: number): Promise<SeverableProxy> {
  const open = new Set<Socket>()
  let isCut = false
  let accepted = 0
  const server = createServer((client) => {
    accepted++
    if (isCut) {
      client.resetAndDestroy()
      return
    }
    const target = connect({ port, host: '127.0.0.1', noDelay: true })
    client.setNoDelay(true)
    for (const [one, other] of [
      [client, target],
      [target, client],
    ] as const) {
      open.add(one)
      one.pipe(other)
      one.on('error', () => other.destroy())
      one.on('close', () => {
        open.delete(one)
        other.destroy()
      })
    }
  })
  return new Promise((resolve, reject) => {
    server.on('error', reject)
    server.listen(0, '127.0.0.1', () => {
      const address = server.address()
      resolve({
        port: typeof address === 'object' && address !== null ? address.port : 0,
        get accepted() {
          return accepted
        },
        cut: () => {
          isCut = true
          for (const socket of open) socket.resetAndDestroy()
        },
        freeze: () => {
          for (const socket of open) {
            socket.unpipe()
            socket.pause()
          }
        },
        mend: () => {
          isCut = false
        },
        stop: async () => {
          for (const socket of open) socket.destroy()
          await new Promise((done) => server.close(done))
        },
      })
    })
  })
}
