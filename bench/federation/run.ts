// `npm run bench:federation`: lists and watches of the pods of several real clusters, read as one, beside the same of one of them, direct and through its
// read cache; and how long reads take while one of the clusters is frozen.

import process from 'node:process'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { alice } from '../../test/harness/federation/federated-clusters.ts'
import { cpuTime, goalsTable, mebibytes, median, milliseconds, ratio, table } from '../cache/tables.ts'
import { cpuSeconds } from '../load/processes.ts'
import { type TimedRead, TimedReads } from './timed-reads.ts'
import { createFederatedWorld, PREPARED_PODS, type Target } from './world.ts'

const { values } = parseArgs({
  options: {
    full: { type: 'boolean', default: false },
    members: { type: 'string', default: '3' },
    pods: { type: 'string' },
    'pod-bytes': { type: 'string' },
    rounds: { type: 'string' },
    writes: { type: 'string' },
    threads: { type: 'string' },
    'frozen-seconds': { type: 'string' },
  },
})

type Size = 'pods' | 'pod-bytes' | 'rounds' | 'writes' | 'threads' | 'frozen-seconds'
const SMALL: Readonly<Record<Size, number>> = {
  ...{ pods: 1_000, 'pod-bytes': 2048, rounds: 5, writes: 10, threads: 2, 'frozen-seconds': 20 },
}
const FULL: Readonly<Record<Size, number>> = {
  ...{ pods: 20_000, 'pod-bytes': 2048, rounds: 9, writes: 30, threads: 2, 'frozen-seconds': 60 },
}
const size = (name: Size): number => Number(values[name] ?? (values.full ? FULL : SMALL)[name])

const PATH = '/api/v1/pods'
const PAGE = 500
const IDLE_SECONDS = 5
const MEMBERS = Array.from({ length: Number(values.members) }, (_, at) => `member-${at + 1}`)
/** Longer than the gateway remembers what a member allows: it is asked again. */
const RIGHTS_ARE_OLD_MS = 11_000
const FROZEN_PAUSE_MS = 250
const certificate = alice.cert
if (certificate === undefined) throw new Error('the reader has no certificate')

/** How the pods are read. */
const KINDS = ['LIST in pages', 'LIST of any age', 'WATCH'] as const
type Kind = (typeof KINDS)[number]

/** CPU seconds. */
interface Cpu {
  readonly apiservers: number
  readonly gateway: number
}

interface Measured extends TimedRead {
  readonly cpu: Cpu
}

class Side {
  readonly target: Target
  readonly reads: TimedReads
  /** How many members' pods it reads. */
  readonly members: number
  readonly #times = new Map<Kind, Measured[]>()

  constructor(target: Target, reads: TimedReads, members: number) {
    this.target = target
    this.reads = reads
    this.members = members
  }

  async read(kind: Kind): Promise<TimedRead> {
    switch (kind) {
      case 'LIST in pages':
        return await this.reads.pages(PATH, PAGE)
      case 'LIST of any age':
        return await this.reads.read(`${PATH}?resourceVersion=0`)
      case 'WATCH': {
        const watch = await this.reads.watch(PATH)
        watch.close()
        return watch
      }
    }
  }

  add(kind: Kind, measured: Measured): void {
    this.#times.set(kind, [...(this.#times.get(kind) ?? []), measured])
  }

  warned(kind: Kind): number {
    return (this.#times.get(kind) ?? []).filter(({ warning }) => warning !== '').length
  }

  median(kind: Kind, of: (one: Measured) => number): number {
    return median((this.#times.get(kind) ?? []).map(of))
  }
}

/** The same reads of several members at the same time: what the machine takes for as many bytes as `all` has. */
class AtOnce extends Side {
  readonly #sides: readonly Side[]

  constructor(sides: readonly Side[], first: Side) {
    super(first.target, first.reads, sides.length)
    this.#sides = sides
  }

  override async read(kind: Kind): Promise<TimedRead> {
    const reads = await Promise.all(this.#sides.map((side) => side.read(kind)))
    const sum = (of: (one: TimedRead) => number): number => reads.reduce((total, one) => total + of(one), 0)
    return {
      firstMs: Math.max(...reads.map(({ firstMs }) => firstMs)),
      ms: Math.max(...reads.map(({ ms }) => ms)),
      bytes: sum(({ bytes }) => bytes),
      pages: sum(({ pages }) => pages),
      warning: '',
    }
  }
}

const world = await createFederatedWorld({
  members: MEMBERS,
  pods: size('pods'),
  podBytes: size('pod-bytes'),
  threads: size('threads'),
})
const opened: TimedReads[] = []
const all = sideOf(world.federated, MEMBERS.length)

function sideOf(target: Target, members = 1): Side {
  const reads = new TimedReads(target, certificate as NonNullable<typeof certificate>)
  opened.push(reads)
  return new Side(target, reads, members)
}

function cpuNow(): Cpu {
  const apiservers = world.apiserverPids.reduce((sum, pid) => sum + cpuSeconds(pid), 0)
  return { apiservers, gateway: cpuSeconds(world.gateway.pid) }
}

/** Each member's last page is one that is not full, when each is read by itself. */
function pagesOf(side: Side): number {
  const pods = size('pods') + PREPARED_PODS
  return side === all ? Math.ceil((pods * side.members) / PAGE) : Math.ceil(pods / PAGE) * side.members
}

/** What a second costs in which there is nothing to do. */
async function idleCpu(): Promise<Cpu> {
  const before = cpuNow()
  await sleep(IDLE_SECONDS * 1000)
  const after = cpuNow()
  return {
    apiservers: (after.apiservers - before.apiservers) / IDLE_SECONDS,
    gateway: (after.gateway - before.gateway) / IDLE_SECONDS,
  }
}

async function measure(sides: readonly Side[]): Promise<void> {
  const idle = await idleCpu()
  for (const kind of KINDS) {
    // The first round is no part of it.
    for (let round = 0; round <= size('rounds'); round++) {
      for (const side of sides) {
        // As in any cluster in use: otherwise the version of the last proof is that of the moment.
        await world.pass()
        const before = cpuNow()
        const fromMs = performance.now()
        const read = await side.read(kind)
        const after = cpuNow()
        const seconds = (performance.now() - fromMs) / 1000
        if (kind === 'LIST in pages' && read.pages !== pagesOf(side))
          throw new Error(`${side.target.name}: ${read.pages} pages are not all`)
        const cpu = {
          apiservers: Math.max(0, after.apiservers - before.apiservers - seconds * idle.apiservers),
          gateway: Math.max(0, after.gateway - before.gateway - seconds * idle.gateway),
        }
        if (round > 0) side.add(kind, { ...read, cpu })
      }
    }
  }
}

/** @returns by the name of the side: milliseconds from before a write in a member until its event is there */
async function measureEvents(sides: readonly Side[]): Promise<ReadonlyMap<string, number>> {
  const [member] = world.members
  if (member === undefined) return new Map()
  const watches = await Promise.all(sides.map(async (side) => ({ side, watch: await side.reads.watch(PATH) })))
  const times = new Map<string, number[]>()
  for (let at = 1; at <= size('writes'); at++) {
    const waiting = watches.map(({ watch }) => watch.seen(`"write":"${at}"`))
    const fromMs = performance.now()
    await member.pods.write()
    for (const [index, seenMs] of (await Promise.all(waiting)).entries()) {
      const name = sides[index]?.target.name ?? ''
      times.set(name, [...(times.get(name) ?? []), seenMs - fromMs])
    }
  }
  for (const { watch } of watches) watch.close()
  return new Map(Array.from(times, ([name, all]) => [name, median(all)]))
}

interface Frozen {
  readonly what: string
  readonly times: readonly number[]
  readonly warning: string
}

/** Reads of all while the last member is frozen: those at the beginning find it healthy and ask it for rights. */
async function measureFrozen(side: Side): Promise<readonly Frozen[]> {
  const [other, frozen] = [world.members.at(0), world.members.at(-1)]
  const apiserver = frozen?.cluster.apiservers[0]
  if (other === undefined || apiserver === undefined) return []
  const pod = `/api/v1/namespaces/${other.name}--default/pods/web`
  const kinds: readonly (readonly [string, () => Promise<TimedRead>])[] = [
    ['LIST of a page', () => side.reads.read(`${PATH}?limit=${PAGE}`)],
    ['GET of a pod of another member', () => side.reads.read(pod)],
    ['WATCH, until the end of the state', () => side.read('WATCH')],
  ]
  for (const [, read] of kinds) await read()
  await sleep(RIGHTS_ARE_OLD_MS)
  await apiserver.kill('SIGSTOP')
  try {
    const endsMs = performance.now() + size('frozen-seconds') * 1000
    return await Promise.all(
      kinds.map(async ([what, read]) => {
        const times: number[] = []
        let warning = ''
        while (performance.now() < endsMs) {
          const done = await read()
          times.push(done.ms)
          warning = done.warning || warning
          await sleep(FROZEN_PAUSE_MS)
        }
        return { what, times, warning }
      }),
    )
  } finally {
    await apiserver.kill('SIGCONT')
  }
}

function eventsRow([one, through]: readonly Side[], events: ReadonlyMap<string, number>): string[] {
  const cells = [one, undefined, through, all].map((side) =>
    side === undefined ? '-' : milliseconds(events.get(side.target.name) ?? Number.NaN),
  )
  return [`an event of ${MEMBERS[0]}`, ...cells]
}

function slowest(sides: readonly Side[], kind: Kind): Side | undefined {
  return sides.toSorted((a, b) => a.median(kind, ({ ms }) => ms) - b.median(kind, ({ ms }) => ms)).at(-1)
}

try {
  const direct = world.members.map((member) => sideOf(member.direct))
  const cached = world.members.map((member) => sideOf(member.throughGateway))
  const { bytes } = await all.reads.read(`${PATH}?resourceVersion=0`)
  process.stdout.write(
    `${MEMBERS.length} members with ${size('pods')} pods each, ${mebibytes(bytes)} as a list of all; ${size('threads')} gateway threads\n\n`,
  )
  const [one, through] = [direct[0], cached[0]]
  if (one === undefined || through === undefined) throw new Error('there are no members')
  const atOnce = new AtOnce(direct, one)
  await measure([...direct, atOnce, ...cached, all])
  const sidesOf = (kind: Kind): readonly (Side | undefined)[] => [
    ...[slowest(direct, kind), atOnce, slowest(cached, kind), all],
  ]
  const rows = KINDS.flatMap((kind) => {
    const cells = (of: (one: Measured) => number, text: (value: number) => string): string[] =>
      sidesOf(kind).map((side) => (side === undefined ? '-' : text(side.median(kind, of))))
    return [
      [`${kind}: first byte`, ...cells(({ firstMs }) => firstMs, milliseconds)],
      ['- all of it', ...cells(({ ms }) => ms, milliseconds)],
      ['- bytes', ...cells((one) => one.bytes, mebibytes)],
      ['- CPU of the kube-apiservers', ...cells(({ cpu }) => cpu.apiservers, cpuTime)],
      ['- CPU of the gateway', ...cells(({ cpu }) => cpu.gateway, cpuTime)],
      ['- reads with a Warning', ...sidesOf(kind).map((side) => String(side?.warned(kind) ?? '-'))],
    ]
  })
  const watching = [one, through, all]
  const events = await measureEvents(watching)
  table([
    ['', 'the slowest member, direct', 'all members direct, at once', 'the slowest through its cache', 'all'],
    ...rows,
    eventsRow(watching, events),
  ])
  const frozen = await measureFrozen(all)
  process.stdout.write('\n')
  table([
    ['with one member frozen', 'median', 'at most', 'reads', 'Warning'],
    ...frozen.map(({ what, times, warning }) => {
      return [what, milliseconds(median(times)), milliseconds(Math.max(...times)), String(times.length), warning]
    }),
  ])
  goalsTable([
    ...KINDS.flatMap((kind): [string, number, number][] => {
      const against = slowest(direct, kind)
      const times = (of: (one: Measured) => number): number => ratio(all.median(kind, of), against?.median(kind, of))
      return [
        [`${kind}: first byte, x the slowest member direct`, times(({ firstMs }) => firstMs), 1.3],
        ['- all of it, x the slowest member direct', times(({ ms }) => ms), 1.3],
      ]
    }),
    ...frozen.map(({ what, times }): [string, number, number] => {
      return [`one member frozen: ${what}, at most, s`, Math.max(...times) / 1000, 2]
    }),
  ])
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : error}\n`)
  process.exitCode = 1
} finally {
  for (const reads of opened) reads.close()
  await world.stop()
}
