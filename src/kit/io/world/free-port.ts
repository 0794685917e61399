// Whether a port is free, and the message when one cannot be opened.

import { createServer } from 'node:net'
import { UserError } from '../../api/validation/field-errors.ts'
import { formatListenAddress, type ListenAddress } from '../../core/listen-address.ts'

/**
 * Fails if a process already listens on the address, even one that would share it: two gateways that accidentally share a port would each get some of
 * the connections. Port 0 is always free.
 * @param flag that set the address
 * @throws {UserError} saying what to do
 */
export async function requireFreePort(address: ListenAddress, flag: string): Promise<void> {
  if (address.port === 0) return
  const server = createServer()
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => {
      reject(cannotListen(address, error.message, error.code ?? '', flag))
    })
    server.listen({ host: address.host, port: address.port }, () => server.close(() => resolve()))
  })
}

/** @param code from the system: EADDRINUSE and so on */
export function cannotListen(address: ListenAddress, message: string, code: string, flag: string): UserError {
  return new UserError(`cannot listen on ${formatListenAddress(address)}: ${message}`, fixOf(code, flag))
}

function fixOf(code: string, flag: string): string {
  switch (code) {
    case 'EADDRINUSE':
      return `another process uses it; stop that process, or choose another ${flag}`
    case 'ENOTSUP':
      return 'this system does not let two threads share a port: start with --threads 1'
    default:
      return `choose another ${flag}`
  }
}
