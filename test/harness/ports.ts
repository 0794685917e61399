// Free TCP ports for programs that need a fixed one.

import { createServer } from 'node:net'

/**
 * Outside the range from which the kernel takes ports for outgoing connections (32768 up): a connection of some other
 * process must not sit on the port of an apiserver that a test kills and starts again.
 */
const LOWEST = 10_240
const HIGHEST = 32_000

/** Started on ports that were free a moment ago; another process took one of them. */
export class PortTaken extends Error {}

/** Different ports, free on 127.0.0.1 at this moment. */
export async function freePorts(count: number): Promise<number[]> {
  const ports = new Set<number>()
  while (ports.size < count) {
    const port = LOWEST + Math.floor(Math.random() * (HIGHEST - LOWEST))
    if (!ports.has(port) && (await isFree(port))) ports.add(port)
  }
  return [...ports]
}

/** Calls `start` with free ports, and again with others when it throws `PortTaken`. */
export async function withFreePorts<T>(count: number, start: (ports: readonly number[]) => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await start(await freePorts(count))
    } catch (error) {
      if (!(error instanceof PortTaken) || attempt === 5) throw error
    }
  }
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer()
    server.once('error', () => resolve(false))
    server.listen({ port, host: '127.0.0.1', exclusive: true }, () => server.close(() => resolve(true)))
  })
}
