// A thousand users, each with a connection and a token of 1 KB of its own: the first request of each, which costs a
// TokenReview, and all later ones, whose token is remembered. HAProxy knows no tokens: the reference is a certificate on as
// many connections.

import { type Bench, type LoadOptions, type LoadSample, Samples } from '../bench.ts'
import type { Server } from '../processes.ts'

const USERS = 1_000
const SECONDS = 3
const COLD = 'Portcullis, 1,000 tokens of 1 KB, first request of each'
const WARM = 'Portcullis, 1,000 tokens of 1 KB, remembered'
const CERTIFICATE = 'Portcullis, x509'
const HAPROXY = 'HAProxy, x509'

export async function tokens(bench: Bench): Promise<void> {
  const upstream = await bench.upstream()
  const haproxy = await bench.haproxy(upstream.port)
  const gateway = await bench.portcullis({ upstreamPort: upstream.port })
  await bench.warmUp(gateway, ['x509', 'token'])
  await first(bench, gateway, 'warm-up')
  const samples = new Samples<LoadSample>()
  for (let round = 0; round < bench.rounds; round++) {
    samples.add(HAPROXY, await load(bench, haproxy, { identity: 'x509' }))
    samples.add(CERTIFICATE, await load(bench, gateway, { identity: 'x509' }))
    samples.add(COLD, await first(bench, gateway, `round-${round}`))
    samples.add(WARM, await load(bench, gateway, { identity: 'tokens', tokens: `round-${round}` }))
  }
  bench.report.table(
    `${USERS} connections, one request at a time on each; the proxy on one core, client and upstream on the other`,
    ['', 'CPU us/request', 'requests/s', 'cores used', 'requests/s and core'],
    samples.names.map((name) => [
      name,
      samples.median(name, cpuMicros).toFixed(2),
      samples.median(name, (sample) => sample.perSecond).toFixed(0),
      samples.median(name, (sample) => sample.cores).toFixed(2),
      samples.median(name, (sample) => sample.perSecond / Math.min(sample.cores, 1)).toFixed(0),
    ]),
  )
  bench.report.result('tokens.haproxy', samples.ratio(WARM, HAPROXY, cpuMicros))
  bench.report.result('tokens.warm', samples.ratio(WARM, CERTIFICATE, cpuMicros))
  bench.report.result('tokens.cold', samples.ratio(COLD, WARM, cpuMicros))
}

const cpuMicros = (sample: LoadSample): number => sample.cpuMicros

function load(bench: Bench, server: Server, options: LoadOptions): Promise<LoadSample> {
  return bench.load(server, { ...options, connections: USERS, streams: 1, seconds: SECONDS })
}

/** One request of each user, whose tokens are new. */
function first(bench: Bench, server: Server, tokens: string): Promise<LoadSample> {
  return load(bench, server, { identity: 'tokens', tokens, requests: USERS, warmUp: 0 })
}
