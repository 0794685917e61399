// A process of clients that list over and over, each on its own connection, and throw away what they get: beside the test, so that what
// they read costs the test's own clients nothing. Told by JSON in the argument; says how many answers of each status there were.

import type { ClientHttp2Session } from 'node:http2'
import { setTimeout } from 'node:timers/promises'
import { h2Connect, h2Open } from './h2-client.ts'

export interface ListClients {
  readonly port: number
  readonly serverName: string
  readonly certPem: string
  readonly keyPem: string
  readonly path: string
  readonly clients: number
  /** A client that was answered, or refused, comes again after this. */
  readonly pauseMs: number
}

const options = JSON.parse(process.argv[2] ?? '') as ListClients
const statuses: Record<string, number> = {}

async function list(session: ClientHttp2Session): Promise<void> {
  const stream = h2Open(session, [':path', options.path, ':authority', options.serverName])
  const status = await new Promise<number>((resolve) => {
    let code = 0
    stream.once('response', (headers) => {
      code = Number(headers[':status'])
    })
    stream.once('close', () => resolve(code))
    stream.resume()
  })
  statuses[status] = (statuses[status] ?? 0) + 1
}

async function loop(): Promise<void> {
  const { port, serverName, certPem, keyPem } = options
  const session = h2Connect({ port, serverName, certificate: { certPem, keyPem }, streamWindow: 4 * 1024 * 1024 })
  for (;;) {
    await list(session)
    process.send?.(statuses)
    await setTimeout(options.pauseMs)
  }
}

for (let i = 0; i < options.clients; i++) void loop()
