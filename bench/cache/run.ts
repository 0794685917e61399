// `npm run bench:cache`: informers and lists of pods, direct to a real kube-apiserver and through a gateway that has the pods in its read cache, in one
// run: what each costs the processes, and how long it takes.

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import process from 'node:process'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { createCA } from '../../src/pki/io/pki.ts'
import { serverCertificate, writeKeyPair } from '../../test/harness/pki.ts'
import { freePorts } from '../../test/harness/ports.ts'
import { clientProgram } from '../load/client-program.ts'
import { Client, cpuSeconds, residentBytes, startServer, stopAll } from '../load/processes.ts'
import { cpuTime, type GoalRow, goalsTable, mebibytes, median, milliseconds, ratio, table } from './tables.ts'
import { createWorld, type Side, TOKEN_BYTES, TOKEN_PREFIX, type World } from './world.ts'

const { values } = parseArgs({
  options: {
    full: { type: 'boolean', default: false },
    informers: { type: 'string' },
    pods: { type: 'string' },
    'list-pods': { type: 'string' },
    'pod-bytes': { type: 'string' },
    streams: { type: 'string' },
    'at-once': { type: 'string', default: '500' },
    writes: { type: 'string' },
    lists: { type: 'string' },
    threads: { type: 'string' },
    minutes: { type: 'string' },
    'list-first': { type: 'boolean', default: false },
    gzip: { type: 'boolean', default: false },
    'list-writes': { type: 'string', default: '0' },
    only: { type: 'string', default: 'gateway,direct' },
    before: { type: 'string', default: '' },
    profile: { type: 'string', default: '' },
  },
})

type Size = 'informers' | 'pods' | 'list-pods' | 'pod-bytes' | 'streams' | 'writes' | 'lists' | 'threads' | 'minutes'
const SMALL: Readonly<Record<Size, number>> = {
  ...{ informers: 200, pods: 1000, 'list-pods': 0, 'pod-bytes': 2048, streams: 50 },
  ...{ writes: 20, lists: 10, threads: 1, minutes: 0 },
}
/** 10 GiB of states on each side, and lists of 10 MiB. */
const FULL: Readonly<Record<Size, number>> = {
  ...{ informers: 10_000, pods: 500, 'list-pods': 5_000, 'pod-bytes': 2048, streams: 100 },
  ...{ writes: 30, lists: 30, threads: 2, minutes: 18 },
}
const size = (name: Size): number => Number(values[name] ?? (values.full ? FULL : SMALL)[name])

const INFORMERS = size('informers')
const STREAMS = Math.min(size('streams'), INFORMERS)
const CONNECTIONS = Math.ceil(INFORMERS / STREAMS)
const WRITES = size('writes')
const LISTS = size('lists')
const PODS = size('pods')
const LIST_PODS = Math.max(PODS, size('list-pods'))
const IDLE_SECONDS = 5
const MIB = 1024 * 1024

/** CPU seconds. */
interface Cpu {
  readonly apiserver: number
  readonly gateway: number
}

interface Memory {
  readonly apiserver: number
  readonly gateway: number
}

/** What has not been measured when the time is over is missing. */
interface Measured {
  /** Resident, before any informer. */
  before?: Memory
  start?: Cpu & { readonly seconds: number; readonly bytes: number }
  /** Resident, when all informers have begun. */
  memory?: Memory
  /** What a write costs, less one that no informer gets. */
  write?: Cpu & { readonly ms: number; readonly worstMs: number }
  /** What one list costs. */
  list?: Cpu & { readonly ms: number }
}

interface Line {
  readonly micros: number
  readonly bytes: number
  readonly line: string
  readonly others: number
}

function clientOf({ port, host }: Side, mode: string, connections: number, flags: readonly string[]): Client {
  const args = [
    mode,
    `-port=${port}`,
    `-host=${host}`,
    `-connections=${connections}`,
    `-tokens=${TOKEN_PREFIX}`,
    `-token-bytes=${TOKEN_BYTES}`,
    ...(values.gzip ? ['-gzip'] : []),
    ...flags,
  ]
  return new Client(clientProgram(), args, 'any')
}

/** CPU of both processes since; what an idle kube-apiserver takes meanwhile is no part of it. */
class Meter {
  readonly #world: World
  readonly #idle: Cpu
  readonly #from: Cpu
  readonly #startMs = performance.now()
  readonly #gatewayPid: number

  constructor(world: World, idle: Cpu, gatewayPid = world.gateway.pid) {
    this.#world = world
    this.#idle = idle
    this.#gatewayPid = gatewayPid
    this.#from = this.#now()
  }

  used(): Cpu {
    const { apiserver, gateway } = this.#now()
    const seconds = (performance.now() - this.#startMs) / 1000
    return {
      apiserver: Math.max(0, apiserver - this.#from.apiserver - seconds * this.#idle.apiserver),
      gateway: Math.max(0, gateway - this.#from.gateway - seconds * this.#idle.gateway),
    }
  }

  #now(): Cpu {
    return { apiserver: cpuSeconds(this.#world.apiserverPid), gateway: cpuSeconds(this.#gatewayPid) }
  }
}

/** What a write costs that no informer gets: the gateway follows in any case. */
async function writeCpu(world: World, side: Side, idle: Cpu): Promise<Cpu> {
  const meter = new Meter(world, idle, world.gatewayPid(side))
  for (let at = 0; at < WRITES; at++) await world.write()
  const { apiserver, gateway } = meter.used()
  return { apiserver: apiserver / WRITES, gateway: gateway / WRITES }
}

const NO_CPU: Cpu = { apiserver: 0, gateway: 0 }

/** What a second costs in which there is nothing to do. */
async function idleCpu(world: World): Promise<Cpu> {
  const meter = new Meter(world, NO_CPU)
  await sleep(IDLE_SECONDS * 1000)
  const { apiserver, gateway } = meter.used()
  return { apiserver: apiserver / IDLE_SECONDS, gateway: gateway / IDLE_SECONDS }
}

const endsMs = size('minutes') > 0 ? performance.now() + size('minutes') * 60_000 : Number.POSITIVE_INFINITY

class TimeIsOver extends Error {}

/** @throws {TimeIsOver} if it takes longer than there is time */
async function inTime<T>(work: Promise<T>): Promise<T> {
  const restMs = endsMs - performance.now()
  if (restMs === Number.POSITIVE_INFINITY) return await work
  const end = new AbortController()
  try {
    const over = sleep(Math.max(0, restMs), undefined, { signal: end.signal }).then(() => {
      throw new TimeIsOver()
    })
    return await Promise.race([work, over])
  } finally {
    end.abort()
  }
}

function memoryOf(world: World, side: Side): Memory {
  return { apiserver: residentBytes(world.apiserverPid), gateway: residentBytes(world.gatewayPid(side)) }
}

async function measureInformers(world: World, side: Side, idle: Cpu, measured: Measured): Promise<void> {
  const alone = await writeCpu(world, side, idle)
  const flags = ['-path=/api/v1/pods', `-streams=${STREAMS}`, `-verified=${WRITES}`, `-at-once=${values['at-once']}`]
  if (values['list-first']) flags.push('-lists=1')
  measured.before = memoryOf(world, side)
  const client = clientOf(side, 'informers', CONNECTIONS, flags)
  try {
    await inTime(client.next())
    const startMeter = new Meter(world, idle, world.gatewayPid(side))
    client.go()
    const { seconds, bytes } = await inTime(client.next<{ seconds: number; bytes: number }>())
    measured.start = { ...startMeter.used(), seconds, bytes }
    measured.memory = memoryOf(world, side)
    const writeMeter = new Meter(world, idle, world.gatewayPid(side))
    const times: number[] = []
    for (let at = 1; at <= WRITES; at++) {
      const fromMicros = Number(process.hrtime.bigint() / 1000n)
      const version = await world.write()
      const { micros, line, others } = await inTime(client.next<Line>())
      times.push((micros - fromMicros) / 1000)
      if (at < WRITES) continue
      if (others > 0 || !line.includes(`"resourceVersion":"${version}"`))
        throw new Error(`${side.name}: ${others} informers did not get the last change as the others did`)
    }
    const { apiserver, gateway } = writeMeter.used()
    measured.write = {
      apiserver: Math.max(0, apiserver / WRITES - alone.apiserver),
      gateway: Math.max(0, gateway / WRITES - alone.gateway),
      ms: median(times),
      worstMs: Math.max(...times),
    }
  } finally {
    await client.stop()
  }
}

async function measureLists(
  side: Side,
  cpuSince: () => () => Cpu,
  before: () => Promise<unknown> = () => Promise.resolve(),
): Promise<NonNullable<Measured['list']>> {
  const client = clientOf(side, 'list', 1, ['-path=/api/v1/pods?resourceVersion=0'])
  try {
    const times: number[] = []
    let used = cpuSince()
    // The first one is no part of it.
    for (let at = 0; at <= LISTS; at++) {
      await inTime(client.next())
      if (at === 1) used = cpuSince()
      await before()
      client.go()
      const { seconds } = await inTime(client.next<{ seconds: number }>())
      if (at > 0) times.push(seconds * 1000)
    }
    const { apiserver, gateway } = used()
    return { apiserver: apiserver / LISTS, gateway: gateway / LISTS, ms: median(times) }
  } finally {
    await client.stop()
  }
}

/** The same bytes from a server that does nothing else. */
async function measureBare(body: Buffer): Promise<NonNullable<Measured['list']>> {
  const folder = mkdtempSync(join(tmpdir(), 'portcullis-bench-'))
  try {
    const pair = serverCertificate(createCA({ commonName: 'bench' }), ['localhost'], ['127.0.0.1'])
    const { cert, key } = writeKeyPair(folder, 'bare', pair)
    const file = join(folder, 'body')
    writeFileSync(file, body)
    const [port = 0] = await freePorts(1)
    const program = join(import.meta.dirname, 'bare-server.ts')
    const args = [program, String(port), cert, key, file]
    const server = await startServer({ name: 'bare', port, command: process.execPath, args, place: 'any' })
    const cpuSince = (): (() => Cpu) => {
      const from = cpuSeconds(server.pid)
      return () => ({ apiserver: 0, gateway: cpuSeconds(server.pid) - from })
    }
    try {
      return await measureLists({ name: 'bare', port, host: 'localhost' }, cpuSince)
    } finally {
      await server.stop()
    }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

function print(results: ReadonlyMap<Side['name'], Measured>): void {
  const all = [...results.values()]
  const row = <K extends keyof Measured>(
    name: string,
    key: K,
    text: (one: NonNullable<Measured[K]>) => string,
  ): string[] => {
    const cellOf = (one: Measured[K]): string => (one === undefined ? '-' : text(one))
    return [name, ...all.map((one) => cellOf(one[key]))]
  }
  table([
    ['', ...results.keys()],
    row('until all have their state', 'start', ({ seconds, bytes }) => `${seconds.toFixed(2)} s, ${mebibytes(bytes)}`),
    row('- CPU of kube-apiserver', 'start', ({ apiserver }) => cpuTime(apiserver)),
    row('- CPU of the gateway, or bare server', 'start', ({ gateway }) => cpuTime(gateway)),
    row('memory before: kube-apiserver', 'before', ({ apiserver }) => mebibytes(apiserver)),
    row('- the gateway', 'before', ({ gateway }) => mebibytes(gateway)),
    row('memory then: kube-apiserver', 'memory', ({ apiserver }) => mebibytes(apiserver)),
    row('- the gateway', 'memory', ({ gateway }) => mebibytes(gateway)),
    row('a write, until the last has it: median', 'write', ({ ms: median }) => milliseconds(median)),
    row('- at most', 'write', ({ worstMs }) => milliseconds(worstMs)),
    row('- CPU of kube-apiserver for the informers', 'write', ({ apiserver }) => cpuTime(apiserver)),
    row('- CPU of the gateway for them', 'write', ({ gateway }) => cpuTime(gateway)),
    row('LIST of any age', 'list', ({ ms: median }) => milliseconds(median)),
    row('- CPU of kube-apiserver', 'list', ({ apiserver }) => cpuTime(apiserver)),
    row('- CPU of the gateway, or bare server', 'list', ({ gateway }) => cpuTime(gateway)),
  ])
}

/** Sizes other than the full one are only an indication. */
function judge(results: ReadonlyMap<Side['name'], Measured>, memory: number): void {
  const [direct, gateway, bare] = [results.get('direct'), results.get('gateway'), results.get('bare')]
  const listCpu = gateway?.list && gateway.list.gateway + gateway.list.apiserver
  const rows: readonly GoalRow[] = [
    [
      'CPU of kube-apiserver at the start, x direct',
      ratio(gateway?.start?.apiserver, direct?.start?.apiserver),
      1 / 50,
    ],
    ['CPU of kube-apiserver for a write, x direct', ratio(gateway?.write?.apiserver, direct?.write?.apiserver), 1 / 50],
    ['a write until the last has it, x direct', ratio(gateway?.write?.ms, direct?.write?.ms), 1.2],
    ['memory of the objects, x their JSON', memory, 1.3],
    ['LIST of any age, x direct', ratio(gateway?.list?.ms, direct?.list?.ms), 1 / 3],
    ['- CPU of both processes, x direct', ratio(listCpu, direct?.list?.apiserver), 1 / 10],
    [
      '- CPU of a bare server that sends the same, x direct',
      ratio(bare?.list?.gateway, direct?.list?.apiserver),
      1 / 10,
    ],
  ]
  goalsTable(rows)
}

const { profile } = values
if (profile !== '') mkdirSync(profile, { recursive: true })
const world = await createWorld({
  pods: PODS,
  podBytes: size('pod-bytes'),
  users: CONNECTIONS,
  threads: size('threads'),
  before: values.before,
  nodeArgs: profile === '' ? [] : ['--cpu-prof', `--cpu-prof-dir=${profile}`, '--cpu-prof-interval=200'],
})
const results = new Map<Side['name'], Measured>()
try {
  const raw = (await world.list()).length
  const kept = await world.metric(`cache_bytes{cluster="${world.cluster.name}",resource="pods"}`)
  process.stdout.write(
    `${CONNECTIONS * STREAMS} informers on ${CONNECTIONS} connections, a user each; ${PODS} pods, ${(raw / MIB).toFixed(1)} MiB as a list of raw JSON, ` +
      `${(kept / MIB).toFixed(1)} MiB in the cache; lists of ${LIST_PODS} pods; ${size('threads')} gateway threads\n\n`,
  )
  try {
    await measureAll(results)
  } catch (error) {
    if (!(error instanceof TimeIsOver)) throw error
    process.stdout.write(`${size('minutes')} minutes are over: what is missing was not measured\n\n`)
  }
  print(results)
  judge(results, kept / raw)
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : error}\n`)
  process.exitCode = 1
} finally {
  await stopAll()
  await world.stop()
}

/** The gateway first: a kube-apiserver that has served all informers itself has gigabytes of garbage to collect. */
async function measureAll(into: Map<Side['name'], Measured>): Promise<void> {
  const only = values.only.split(',')
  const sides = [world.throughGateway, world.direct].filter(({ name }) => only.includes(name))
  if (world.throughBefore !== undefined) sides.push(world.throughBefore)
  for (const side of sides) into.set(side.name, {})
  const measuredOf = (side: Side): Measured => into.get(side.name) ?? {}
  const idle = await idleCpu(world)
  if (INFORMERS > 0) for (const side of sides) await measureInformers(world, side, idle, measuredOf(side))
  await inTime(world.grow(LIST_PODS))
  const quiet = await idleCpu(world)
  let written = 0
  const writes = async (): Promise<void> => {
    // All over the list.
    for (let at = 0; at < Number(values['list-writes']); at++) await world.write(written++ * 7919)
  }
  for (const side of sides) {
    const cpuSince = (): (() => Cpu) => {
      const meter = new Meter(world, quiet, world.gatewayPid(side))
      return () => meter.used()
    }
    measuredOf(side).list = await measureLists(side, cpuSince, writes)
  }
  // It sends all as it is.
  if (values.gzip) return
  const bare: Measured = {}
  into.set('bare', bare)
  bare.list = await measureBare(await world.list())
}
