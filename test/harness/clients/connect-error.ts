// Whether a port takes connections.

import { connect } from 'node:net'

/** Why a connection to a port of this machine cannot be opened, as Node's error code; '' = it was, and is closed again. */
export function connectError(port: number): Promise<string> {
  return new Promise((resolve) => {
    const socket = connect({ port, host: '127.0.0.1' })
    socket.once('connect', () => {
      socket.destroy()
      resolve('')
    })
    socket.once('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? ''))
  })
}
