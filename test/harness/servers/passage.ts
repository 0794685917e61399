// Addresses of their own for servers that listen on 127.0.0.1.

import { createServer, connect as netConnect, type Server, type Socket } from 'node:net'

/** Passes connections on to a port of 127.0.0.1. @param port 0 = any */
export function passage(host: string, port: number, onwardPort: number): Promise<Server> {
  const server = createServer((socket) => {
    const onward = netConnect(onwardPort, '127.0.0.1')
    const end = (): void => {
      socket.destroy()
      onward.destroy()
    }
    for (const one of [socket, onward] satisfies Socket[]) one.once('error', end).once('close', end)
    socket.pipe(onward)
    onward.pipe(socket)
  })
  return new Promise((resolve) => void server.listen(port, host, () => resolve(server)))
}
