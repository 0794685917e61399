// The memory of what is open and quiet: connections without requests, and twice as many watches as row `watches` has on four times as many
// connections, as agents on many nodes open them.

import { type Bench, Samples } from '../bench.ts'
import type { Server } from '../processes.ts'
import { memoryOf, type Opened, WATCH_ENDPOINTS, WATCH_PATH } from './watches.ts'

const CONNECTIONS = 2_000
const STREAMS = 50
const KIB = 1024
/** All connections come from one address and belong to one user, and some never send a request. */
const FLAGS = [
  '--first-request-timeout=1h',
  '--max-connections-per-address=0',
  '--max-unauthenticated-connections=0',
  '--max-watches=0',
]

const KINDS: readonly {
  readonly id: string
  readonly name: string
  readonly mode: string
  readonly flags: string[]
}[] = [
  { id: 'idle.connections', name: 'a connection without requests', mode: 'idle', flags: [] },
  { id: 'idle.watches', name: 'a watch', mode: 'watch', flags: [`-streams=${STREAMS}`, `-path=${WATCH_PATH}`] },
]

export async function idle(bench: Bench): Promise<void> {
  const samples = new Samples<Opened>()
  const servers = [
    (port: number): Promise<Server> => bench.haproxy(port, { endpoints: WATCH_ENDPOINTS }),
    (port: number): Promise<Server> =>
      bench.portcullis({ upstreamPort: port, endpoints: WATCH_ENDPOINTS, flags: FLAGS }),
  ]
  for (let round = 0; round < bench.rounds; round++) {
    for (const { name, mode, flags } of KINDS) {
      // A fresh process each time: memory that was freed does not go back to the system.
      for (const start of servers) {
        const upstream = await bench.upstream(WATCH_ENDPOINTS)
        const server = await start(upstream.port)
        const opened = await memoryOf(bench, server, mode, [`-connections=${CONNECTIONS}`, ...flags])
        samples.add(`${server.name}, ${name}`, opened)
        await server.stop()
        await upstream.stop()
      }
    }
  }
  bench.report.table(
    `${CONNECTIONS} connections: without requests, and with ${STREAMS} watches each, whose memory counts the connections, too`,
    ['', 'how many', 'KiB each', 'seconds until all are open'],
    samples.names.map((name) => [
      name,
      samples.median(name, (sample) => sample.open),
      (samples.median(name, bytesEach) / KIB).toFixed(1),
      samples.median(name, (sample) => sample.openSeconds).toFixed(1),
    ]),
  )
  for (const { id, name } of KINDS) bench.report.result(id, samples.median(`Portcullis, ${name}`, bytesEach) / KIB)
}

const bytesEach = (sample: Opened): number => sample.bytesEach
