// Full load with everything on that shows what happens: top talkers are counted, an audit policy is asked and says None, one request of a hundred
// is traced, the LIST guard is on, taps are possible. Against a gateway without any of it.

import { once } from 'node:events'
import { createServer, type Server as HttpServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type Bench, type Gateway, type LoadOptions, type LoadSample, Samples } from '../bench.ts'

const ON = 'Portcullis, everything on'
const OFF = 'Portcullis, everything off'
const LOAD: LoadOptions = { seconds: 2 }
const TRACED_PER_MILLION = 10_000
/** What is asked for most is not recorded: the usual first rule. */
const AUDIT_POLICY = {
  apiVersion: 'audit.k8s.io/v1',
  kind: 'Policy',
  rules: [{ level: 'None', verbs: ['get', 'list', 'watch'] }, { level: 'Metadata' }],
}

export async function insight(bench: Bench): Promise<void> {
  const collector = await startCollector()
  const upstream = await bench.nghttpd()
  // Processes of the same program differ by a few per cent, and by which was started first.
  const gateways: Gateway[] = []
  for (const on of [true, false, false, true]) {
    const options = on ? everythingOn(bench, collector) : { name: OFF, flags: ['--top=false'] }
    const gateway = await bench.portcullis({ ...options, upstreamPort: upstream.port })
    await bench.warmUp(gateway)
    gateways.push(gateway)
  }
  const samples = new Samples<LoadSample>()
  for (let round = 0; round < bench.rounds; round++) {
    for (const gateway of round % 2 === 0 ? gateways : gateways.toReversed()) {
      samples.add(gateway.name, await bench.load(gateway, LOAD))
    }
  }
  bench.report.table(
    'Everything on that shows what happens; the proxy on one core, client and upstream on the other',
    ['', 'CPU us/request', 'requests/s', 'cores used'],
    samples.names.map((name) => [
      name,
      samples.median(name, cpuMicros).toFixed(2),
      samples.median(name, (sample) => sample.perSecond).toFixed(0),
      samples.median(name, (sample) => sample.cores).toFixed(2),
    ]),
  )
  const tracing = await Promise.all(gateways.filter(({ name }) => name === ON).map(tracesOf))
  bench.report.table('Its traces, by process', ['spans taken by the collector', 'requests dropped'], tracing)
  bench.report.result('insight.cpu', samples.ratio(ON, OFF, cpuMicros))
  collector.close()
}

function everythingOn(bench: Bench, collector: HttpServer): Omit<Parameters<Bench['portcullis']>[0], 'upstreamPort'> {
  const { port } = collector.address() as AddressInfo
  const flags = [
    '--top=true',
    `--audit-policy-file=${bench.material.write('audit-policy.json', JSON.stringify(AUDIT_POLICY))}`,
    `--tracing-otlp-endpoint=http://127.0.0.1:${port}`,
    `--tracing-sampling-rate-per-million=${TRACED_PER_MILLION}`,
  ]
  return { name: ON, flags, auditLog: bench.material.path(`audit-${Date.now()}.log`), listGuard: true }
}

/** Takes spans and forgets them. */
async function startCollector(): Promise<HttpServer> {
  const server = createServer((request, response) => {
    request.resume().once('end', () => response.writeHead(200, { 'content-type': 'application/json' }).end('{}'))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return server
}

async function tracesOf(gateway: Gateway): Promise<string[]> {
  const text = await (await fetch(`http://127.0.0.1:${gateway.admin}/metrics`)).text()
  const sum = (pattern: RegExp): string =>
    String([...text.matchAll(pattern)].reduce((total, [, count]) => total + Number(count), 0))
  return [
    sum(/^portcullis_tracing_spans_total\{result="exported"\} (\d+)$/gm),
    sum(/^portcullis_tracing_requests_dropped_total\{.*\} (\d+)$/gm),
  ]
}

const cpuMicros = (sample: LoadSample): number => sample.cpuMicros
