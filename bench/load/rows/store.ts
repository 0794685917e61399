// A start with thousands of UpstreamClusters in the store of the embedded API server: how long until requests are answered, and the memory
// of the process when it has become quiet. It runs what is shipped, the bundle: from the sources a start takes half a second more.

import { execFileSync } from 'node:child_process'
import { copyFileSync, mkdirSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import process from 'node:process'
import { type Bench, type GatewayOptions, Samples } from '../bench.ts'
import { quietBytes } from './watches.ts'

const COUNTS = [2_000, 10_000]
const MIB = 1024 * 1024

interface Sample {
  readonly seconds: number
  readonly bytes: number
}

export async function store(bench: Bench): Promise<void> {
  // It answers the first health check of each cluster, which is a TLS handshake.
  const upstream = await bench.upstream()
  const program = install(bench)
  const samples = new Samples<Sample>()
  for (const count of COUNTS) {
    const options = {
      program,
      upstreamPort: upstream.port,
      embedded: true,
      otherClusters: count - 1,
      otherPort: upstream.port,
    }
    const createdMs = performance.now()
    const first = await bench.portcullis(options)
    const seconds = (performance.now() - createdMs) / 1000
    bench.report.note(`${count} UpstreamClusters created over HTTP, one after the other: ${seconds.toFixed(0)} s.`)
    await first.stop()
    for (let round = 0; round < bench.rounds; round++) {
      samples.add(nameOf(count), await startAgain(bench, { ...options, port: first.port }))
    }
  }
  bench.report.table(
    'A start after kill -9, one gateway thread, all on one core',
    ['', 'seconds until it serves', 'memory when quiet, MiB'],
    samples.names.map((name) => [
      name,
      samples.median(name, (sample) => sample.seconds).toFixed(1),
      (samples.median(name, bytes) / MIB).toFixed(0),
    ]),
  )
  for (const count of COUNTS) {
    bench.report.result(
      `store.${count}`,
      samples.median(nameOf(count), (sample) => sample.seconds),
    )
  }
  bench.report.result('store.memory', samples.median(nameOf(COUNTS.at(-1) ?? 0), bytes) / MIB)
}

/** As it is installed, without the sources. @returns the command */
function install({ root, material }: Bench): string {
  const dir = material.path('installed')
  const program = join(dir, 'bin/portcullis')
  mkdirSync(join(dir, 'bin'), { recursive: true })
  copyFileSync(join(root, 'bin/portcullis'), program)
  // With the Node of the checkout.
  symlinkSync(join(root, 'node_modules'), join(dir, 'node_modules'))
  execFileSync(process.execPath, [join(root, 'build/build.ts'), '--out', join(dir, 'dist')])
  return program
}

const bytes = (sample: Sample): number => sample.bytes

function nameOf(count: number): string {
  return `${count} UpstreamClusters`
}

async function startAgain(bench: Bench, options: GatewayOptions): Promise<Sample> {
  const startMs = performance.now()
  const gateway = await bench.portcullis(options)
  const seconds = (gateway.servesSinceMs - startMs) / 1000
  const sample = { seconds, bytes: await quietBytes(gateway.pid) }
  await gateway.stop()
  return sample
}
