// A TCP proxy on this machine whose connection a test can break: severed, restored, frozen (connections stay, nothing passes), or
// hung (as frozen, new connections too, and what was sent in the meantime arrives when it is restored).

import { connect, createServer, type Socket } from 'node:net'
import { resetConnections } from './reset-connections.ts'

export interface SeverableProxy {
  readonly port: number
  /** Connections that were accepted so far. */
  readonly accepted: number
  /** Resets all connections, and new ones at once. */
  sever(): void
  /** From now on nothing passes on the connections that there are; new ones work. */
  freeze(): void
  /** Nothing passes on any connection, new ones included, until it is restored. */
  hang(): void
  restore(): void
  stop(): Promise<void>
}

/** @param port on 127.0.0.1 to which it leads */
export function startSeverableProxy(port: number): Promise<SeverableProxy> {
  const open = new Set<Socket>()
  const other = new Map<Socket, Socket>()
  let isCut = false
  /** What is to be done when a hanging cable is restored; undefined = it does not hang. */
  let hanging: (() => void)[] | undefined
  let accepted = 0
  const pass = (from: Socket, to: Socket): void => {
    const begin = (): void => void from.pipe(to)
    if (hanging === undefined) begin()
    else hanging.push(begin)
    from.on('error', () => to.destroy())
    from.on('close', () => {
      open.delete(from)
      to.destroy()
      other.delete(from)
    })
    open.add(from)
    other.set(from, to)
  }
  const server = createServer((client) => {
    accepted++
    if (isCut) {
      client.resetAndDestroy()
      return
    }
    const target = connect({ port, host: '127.0.0.1', noDelay: true })
    client.setNoDelay(true)
    pass(client, target)
    pass(target, client)
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
        sever: () => {
          isCut = true
          resetConnections(open)
        },
        freeze: () => {
          for (const socket of open) {
            socket.unpipe()
            socket.pause()
          }
        },
        hang: () => {
          const held: (() => void)[] = []
          hanging = held
          for (const [from, to] of other) {
            from.unpipe()
            from.pause()
            held.push(() => void from.pipe(to))
          }
        },
        restore: () => {
          isCut = false
          const held = hanging ?? []
          hanging = undefined
          for (const begin of held) begin()
        },
        stop: async () => {
          for (const socket of open) socket.destroy()
          await new Promise((done) => server.close(done))
        },
      })
    })
  })
}
