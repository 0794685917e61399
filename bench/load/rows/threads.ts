// Two threads against one. Client and upstream need their part of the machine, too, so what each number of threads can
// do is what it did, divided by the cores that were left for it. An idle core counts as left: threads that wait for each
// other, or one that has nothing to do, lower the result.

import { availableParallelism } from 'node:os'
import { type Bench, type LoadOptions, type LoadSample, Samples } from '../bench.ts'
import { cpuSeconds, type Server } from '../processes.ts'

const SECONDS = 3
/** With few, one thread would by chance often get most of them, and the other one idle. */
const CONNECTIONS = { threads: 64, 'threads.few': 16, 'threads.four': 4 }

interface Sample extends LoadSample {
  /** Cores that client and upstream left. */
  readonly left: number
}

export async function threads(bench: Bench): Promise<void> {
  const cores = availableParallelism()
  if (!bench.hasThreads || cores < 2) {
    bench.report.note(`Two threads are left out: ${bench.hasThreads ? 'there is one core' : 'there is no --threads'}.`)
    return
  }
  const upstream = await bench.nghttpd('any')
  const one = await bench.portcullis({ upstreamPort: upstream.port, name: 'one thread', threads: 1, place: 'any' })
  const two = await bench.portcullis({ upstreamPort: upstream.port, name: 'two threads', threads: 2, place: 'any' })
  const options = { connections: CONNECTIONS.threads, streams: 16, seconds: SECONDS, place: 'any' } as const
  for (const server of [one, two]) await bench.load(server, { ...options, seconds: 2 * SECONDS, tolerated: 1 })
  for (const [id, connections] of Object.entries(CONNECTIONS)) {
    const samples = await measure(bench, upstream, [one, two], { ...options, connections })
    bench.report.table(
      `Two threads against one, ${connections} connections: nothing is tied to a core; client and upstream take their part of the two`,
      ['', 'requests/s', 'cores left for it', 'requests/s and core left', 'CPU us/request', 'cores used'],
      samples.names.map((name) => [
        name,
        samples.median(name, (sample) => sample.perSecond).toFixed(0),
        samples.median(name, (sample) => sample.left).toFixed(2),
        samples.median(name, perCore).toFixed(0),
        samples.median(name, (sample) => sample.cpuMicros).toFixed(2),
        samples.median(name, (sample) => sample.cores).toFixed(2),
      ]),
    )
    bench.report.result(id, 2 * samples.ratio('two threads', 'one thread', perCore))
  }
}

async function measure(
  bench: Bench,
  upstream: Server,
  [one, two]: readonly [Server, Server],
  options: LoadOptions,
): Promise<Samples<Sample>> {
  const cores = availableParallelism()
  const samples = new Samples<Sample>()
  for (let round = 0; round < bench.rounds; round++) {
    for (const server of [one, two]) {
      const before = cpuSeconds(upstream.pid)
      const sample = await bench.load(server, options)
      const others = sample.clientSeconds + cpuSeconds(upstream.pid) - before
      const left = server === one ? 1 : Math.min(cores - others / sample.seconds, 2)
      samples.add(server.name, { ...sample, left })
    }
  }
  return samples
}

function perCore(sample: Sample): number {
  return sample.perSecond / sample.left
}
