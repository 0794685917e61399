// Where the gateway's time goes at full load: V8's CPU profiles of all its threads, cut to the load itself.

import { mkdirSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import process from 'node:process'
import { fileURLToPath } from 'node:url'
import type { Bench, Identity, LoadOptions } from './bench.ts'

export interface ProfileOptions {
  readonly threads: number
  readonly identity: Identity
  /** What is asked. Default: full load over HTTP/2. */
  readonly load: Pick<LoadOptions, 'http1' | 'rate'>
  /** The server behind it offers HTTP/1.1 only. */
  readonly olderUpstream: boolean
  /** Functions to print. */
  readonly top: number
}

const SAMPLE_MICROS = 200
const SECONDS = 4

/** https://chromedevtools.github.io/devtools-protocol/tot/Profiler/#type-Profile; times are CLOCK_MONOTONIC. */
interface CpuProfile {
  readonly nodes: readonly {
    readonly id: number
    readonly callFrame: { readonly functionName: string; readonly url: string; readonly lineNumber: number }
  }[]
  readonly startTime: number
  readonly samples: readonly number[]
  readonly timeDeltas: readonly number[]
}

export async function profile(bench: Bench, options: ProfileOptions): Promise<void> {
  const upstream = options.olderUpstream ? await bench.upstream(1, ['-http1']) : await bench.nghttpd()
  const folder = bench.material.path('profiles')
  mkdirSync(folder)
  const nodeArgs = ['--cpu-prof', `--cpu-prof-dir=${folder}`, `--cpu-prof-interval=${SAMPLE_MICROS}`]
  const { threads, identity } = options
  const place = threads > 1 ? 'any' : 'proxy'
  const gateway = await bench.portcullis({ upstreamPort: upstream.port, nodeArgs, threads, place })
  await bench.warmUp(gateway, [identity], options.load)
  const connections = threads * (options.load.http1 === true ? 64 : options.load.rate === undefined ? 4 : 8)
  const load = await bench.load(gateway, { ...options.load, identity, seconds: SECONDS, connections })
  // A profile is written when its thread ends.
  await gateway.end('SIGTERM', 20)
  const files = readdirSync(folder)
  process.stdout.write(
    `${load.requests} requests, ${load.cpuMicros.toFixed(2)} us of CPU each (sampling included), ` +
      `${load.perSecond.toFixed(0)}/s, ${load.cores.toFixed(2)} cores; ${files.length} profiles\n`,
  )
  const total = new Times()
  for (const file of files) {
    const times = new Times()
    const parsed = JSON.parse(readFileSync(join(folder, file), 'utf8')) as CpuProfile
    for (const one of [times, total]) one.add(parsed, bench.root, load.startMicros, load.endMicros)
    if (files.length > 1) {
      process.stdout.write(`${file}: ${((times.busy / (load.endMicros - load.startMicros)) * 100).toFixed(1)} % busy\n`)
    }
  }
  print('folder', total.folders(), total.busy, load.requests, options.top)
  print('function, self time', total.functions, total.busy, load.requests, options.top)
}

/** Self times, microseconds. */
class Times {
  readonly functions = new Map<string, number>()
  busy = 0

  add(profile: CpuProfile, root: string, from: number, to: number): void {
    const names = new Map<number, string>()
    for (const node of profile.nodes) names.set(node.id, nameOf(node.callFrame, root))
    let time = profile.startTime
    for (const [i, id] of profile.samples.entries()) {
      // The sample's time is its own delta after the one before it; what it saw lasts until the next.
      time += profile.timeDeltas[i] ?? 0
      if (time < from || time > to) continue
      const name = names.get(id) ?? ''
      if (name === '(idle)') continue
      const lasted = profile.timeDeltas[i + 1] ?? 0
      this.busy += lasted
      this.functions.set(name, (this.functions.get(name) ?? 0) + lasted)
    }
  }

  folders(): Map<string, number> {
    const result = new Map<string, number>()
    for (const [name, micros] of this.functions) {
      const folder = folderOf(name)
      result.set(folder, (result.get(folder) ?? 0) + micros)
    }
    return result
  }
}

function nameOf({ functionName, url, lineNumber }: CpuProfile['nodes'][number]['callFrame'], root: string): string {
  const file = url.startsWith('file:') ? fileURLToPath(url).replace(`${root}/`, '') : url
  return file === '' ? functionName : `${functionName || '(anonymous)'} ${file}:${lineNumber + 1}`
}

function folderOf(name: string): string {
  const place = name.slice(name.lastIndexOf(' ') + 1)
  if (place.startsWith('src/')) return place.split('/').slice(0, 2).join('/')
  if (place.startsWith('node_modules/')) return place.split('/').slice(0, 2).join('/')
  if (place.startsWith('node:')) return place.replace(/:\d+$/, '').split('/').slice(0, 2).join('/')
  return name.startsWith('(') ? name : 'native functions'
}

function print(title: string, times: ReadonlyMap<string, number>, busy: number, requests: number, top: number): void {
  process.stdout.write(`\n| ${title} | us/request | % |\n| --- | --- | --- |\n`)
  const sorted = [...times].sort((a, b) => b[1] - a[1]).slice(0, top)
  for (const [name, micros] of sorted) {
    process.stdout.write(`| ${name} | ${(micros / requests).toFixed(3)} | ${((micros / busy) * 100).toFixed(1)} |\n`)
  }
}
