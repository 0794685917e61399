// A listening socket that outlives the processes that serve it, as systemd keeps one: opened by a thread that never accepts, given to
// children by the protocol of socket activation. The real systemd cannot run here: it must be process 1.

import { once } from 'node:events'
import { Worker } from 'node:worker_threads'

export interface HeldSocket {
  readonly port: number
  /** In this process; a child gets it by its `stdio`. */
  readonly fd: number
  close(): Promise<void>
}

/** Listens, says so, and sleeps for ever: connections wait in the queue of the socket. */
const HOLD = `
const { parentPort } = require('node:worker_threads')
const server = require('node:net').createServer()
server.listen({ host: '127.0.0.1', port: 0, backlog: 4096 }, () => {
  parentPort.postMessage({ port: server.address().port, fd: server._handle.fd })
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)
})
`

/** Opens a socket on 127.0.0.1 whose connections are not accepted until a child does. */
export async function holdSocket(): Promise<HeldSocket> {
  const worker = new Worker(HOLD, { eval: true })
  worker.unref()
  const [{ port, fd }] = (await once(worker, 'message')) as [{ port: number; fd: number }]
  return { port, fd, close: async () => void (await worker.terminate()) }
}

/** argv that sets LISTEN_PID to the process that it becomes: only the child itself knows its number. */
export function activated(names: readonly string[], argv: readonly string[]): [string, ...string[]] {
  const script =
    'LISTEN_PID=$$ LISTEN_FDS=$0 LISTEN_FDNAMES=$1; export LISTEN_PID LISTEN_FDS LISTEN_FDNAMES; shift; exec "$@"'
  return ['sh', '-c', script, String(names.length), names.join(':'), ...argv]
}
