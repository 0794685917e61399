// Whether a port is anybody's.

import { createServer } from 'node:net'
import { UserError } from '../api/field-errors.ts'
import { formatListenAddress, type ListenAddress } from '../core/listen-address.ts'

/**
 * Fails when a process listens on the address already, also one that would share it: two gateways that share a port by
 * accident would each get some of the connections. Port 0 is always free.
 * @throws {UserError} saying what to do
 */
export async function requireFreePort(address: ListenAddress): Promise<void> {
  if (address.port === 0) return
  const server = createServer()
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => {
      const fix =
        error.code === 'EADDRINUSE'
          ? 'another process has it; end that one, or choose another --listen'
          : 'choose another --listen'
      reject(new UserError(`cannot listen on ${formatListenAddress(address)}: ${error.message}`, fix))
    })
    server.listen({ host: address.host, port: address.port }, () => server.close(() => resolve()))
  })
}
