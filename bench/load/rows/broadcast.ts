// One event to ten thousand watches: the time from the upstream's first write until the last client has it.

import { type Bench, Samples } from '../bench.ts'
import type { Client, Server } from '../processes.ts'
import { WATCH_ENDPOINTS, WATCH_PATH } from './watches.ts'

const WATCHES = 10_000
const STREAMS = 100
/** Events before the first that counts. */
const WARM_UP = 3

interface Target {
  readonly server: Server
  readonly client: Client
  readonly admin: number
}

export async function broadcast(bench: Bench): Promise<void> {
  const targets: Target[] = []
  for (const name of ['HAProxy', 'Portcullis'] as const) {
    const upstream = await bench.upstream(WATCH_ENDPOINTS)
    const upstreamPort = upstream.port
    const endpoints = WATCH_ENDPOINTS
    const haproxy = name === 'HAProxy'
    const server = await (haproxy
      ? bench.haproxy(upstreamPort, { endpoints })
      : bench.portcullis({ upstreamPort, endpoints }))
    const flags = [`-connections=${WATCHES / STREAMS}`, `-streams=${STREAMS}`, `-path=${WATCH_PATH}`]
    const client = bench.client(server, 'watch', flags)
    await client.next().catch((error: Error) => Promise.reject(new Error(`${name}: ${error.message}`)))
    const target = { server, client, admin: upstream.admin }
    for (let i = 0; i < WARM_UP; i++) await milliseconds(target)
    targets.push(target)
  }
  const samples = new Samples<number>()
  for (let round = 0; round < bench.rounds; round++) {
    for (const target of targets) samples.add(target.server.name, await milliseconds(target))
  }
  bench.report.table(
    `One event of 1 KiB to ${WATCHES} watches; the proxy on one core, client and upstream on the other`,
    ['', 'ms until the last client has it'],
    samples.names.map((name) => [name, samples.median(name, same).toFixed(1)]),
  )
  bench.report.result('broadcast', samples.ratio('Portcullis', 'HAProxy', same))
}

const same = (value: number): number => value

async function milliseconds({ client, admin, server }: Target): Promise<number> {
  const response = await fetch(`http://127.0.0.1:${admin}/broadcast`)
  const { watches, micros } = (await response.json()) as { watches: number; micros: number }
  if (watches !== WATCHES) throw new Error(`${server.name}: the upstream has ${watches} watches`)
  const received = await client.next<{ micros: number }>()
  return (received.micros - micros) / 1000
}
