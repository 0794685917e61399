// Full load with logs: a line for each request, and an audit event for each, too. They go to files.

import { type Bench, type LoadSample, Samples } from '../bench.ts'
import type { Server } from '../processes.ts'

const SECONDS = 2
const QUIET = 'Portcullis, no log'
const ACCESS = 'Portcullis, access log'
const BOTH = 'Portcullis, access log and audit log'

export async function logs(bench: Bench): Promise<void> {
  const { port: upstreamPort } = await bench.nghttpd()
  const auditLog = bench.material.path('audit.log')
  const servers: Server[] = [
    await bench.haproxy(upstreamPort),
    await bench.haproxy(upstreamPort, { log: true, name: 'HAProxy, access log' }),
    await bench.portcullis({ upstreamPort, name: QUIET }),
    await bench.portcullis({ upstreamPort, name: ACCESS, logged: true }),
    await bench.portcullis({ upstreamPort, name: BOTH, logged: true, auditLog }),
  ]
  for (const server of servers) await bench.warmUp(server)
  const samples = new Samples<LoadSample>()
  for (let round = 0; round < bench.rounds; round++) {
    for (const server of servers) samples.add(server.name, await bench.load(server, { seconds: SECONDS }))
  }
  bench.report.table(
    'Full load with logs to files; the proxy on one core, client and upstream on the other',
    ['', 'CPU us/request', 'requests/s', 'cores used', 'requests/s and core'],
    samples.names.map((name) => [
      name,
      samples.median(name, cpuMicros).toFixed(2),
      samples.median(name, (sample) => sample.perSecond).toFixed(0),
      samples.median(name, (sample) => sample.cores).toFixed(2),
      samples.median(name, (sample) => sample.perSecond / Math.min(sample.cores, 1)).toFixed(0),
    ]),
  )
  bench.report.result('logs.access', samples.ratio(ACCESS, 'HAProxy, access log', cpuMicros))
  bench.report.result('logs.audit', samples.ratio(BOTH, QUIET, cpuMicros))
}

const cpuMicros = (sample: LoadSample): number => sample.cpuMicros
