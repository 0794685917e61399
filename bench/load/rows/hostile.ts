// Each attack of the corpus (test/attacks/) from one client at full speed beside 500 requests a second of another user: what that user feels,
// against an idle run directly before. The attacker has what is left of the core that it shares with the other user and upstream.

import { availableParallelism } from 'node:os'
import type { Attack, Who } from '../../../test/attacks/attack.ts'
import { Attacker } from '../../../test/attacks/attacker.ts'
import { loadCorpus } from '../../../test/attacks/corpus.ts'
import { HOST, type Scene, startScene } from '../../../test/attacks/scene.ts'
import { stallsOf } from '../../../test/attacks/stalls.ts'
import { SMALL_PATH } from '../../../test/attacks/wire/http2.ts'
import type { Outcome } from '../../../test/attacks/worker-messages.ts'
import type { Bench } from '../bench.ts'
import { clientProgram } from '../client-program.ts'
import { Client, cpuSeconds, residentBytes } from '../processes.ts'

export interface HostileOptions {
  /** Names of attacks, or beginnings of names. Default: all. */
  readonly attacks: readonly string[] | undefined
  /** How long each attack lasts. */
  readonly seconds: number
  /** Numbers of gateway threads: a run for each. */
  readonly threads: readonly number[]
  /** One that misses is measured so many times, and the median counts. */
  readonly attempts: number
}

const RATE = 500
const CONNECTIONS = 4
/** The part of an attack's length that the idle run before it takes. */
const IDLE_PART = 0.5
const GOAL = 2
const SLOW_MS = 10
const MIB = 1024 * 1024
/** A program that computes and sends nothing, in the attacker's place: what the machine itself does to the other user. */
const CONTROL = 'no attack, a busy core'

interface Felt {
  readonly p99: number
  readonly max: number
  readonly failures: number
  /** What broke, when it could not go on. */
  readonly error: string
}

interface Result {
  readonly name: string
  readonly who: string
  readonly threads: number
  readonly idle: Felt
  readonly beside: Felt
  readonly outcome: Outcome | undefined
  /** Resident memory at the end of the attack. */
  readonly bytes: number
  /** Cores that the gateway and upstream used. */
  readonly gatewayCores: number
  readonly upstreamCores: number
  /** Turns of an event loop that took long. */
  readonly stalls: number
}

export async function hostile(bench: Bench, options: HostileOptions): Promise<void> {
  const results: Result[] = []
  for (const threads of options.threads) results.push(...(await withThreads(options, threads)))
  results.sort((a, b) => severity(b) - severity(a))
  const { seconds } = options
  bench.report.table(
    `${RATE} requests a second of a user on ${CONNECTIONS} connections beside ${seconds} s of each attack, the worst first`,
    [
      'attack',
      'by',
      'threads',
      'p99 ms idle',
      'beside',
      'x',
      'max ms',
      'failures',
      'missed',
      'cores',
      'upstream',
      'stalls',
      'MiB',
      'answers',
    ],
    results.map((result) => [
      result.name,
      result.who,
      result.threads,
      result.idle.p99.toFixed(3),
      result.beside.p99.toFixed(3),
      ratio(result).toFixed(2),
      result.beside.max.toFixed(1),
      result.beside.error || result.beside.failures,
      isMissed(result) ? '**missed**' : '',
      result.gatewayCores.toFixed(2),
      result.upstreamCores.toFixed(2),
      result.stalls,
      (result.bytes / MIB).toFixed(0),
      answersOf(result.outcome),
    ]),
  )
  const attacks = results.filter(({ name }) => name !== CONTROL)
  bench.report.note(`${attacks.filter(isMissed).length} of ${attacks.length} missed the goal`)
  bench.report.result(
    'hostile.failures',
    attacks.reduce((sum, { beside }) => sum + beside.failures, 0),
  )
  bench.report.result('hostile.slow', attacks.filter(({ beside }) => !(beside.p99 <= SLOW_MS)).length)
  bench.report.result('hostile.double', attacks.filter((result) => ratio(result) <= GOAL).length)
}

async function withThreads(options: HostileOptions, threads: number): Promise<Result[]> {
  const places =
    availableParallelism() > 1 ? { gateway: ['taskset', '-c', '0'], others: ['taskset', '-c', '1'] } : undefined
  const scene = await startScene({
    threads,
    ...(places !== undefined && { gatewayPrefix: places.gateway, upstreamPrefix: places.others }),
  })
  const attacker = await Attacker.start(places?.others)
  const results: Result[] = []
  try {
    await bystander(scene, WARM_UP_SECONDS)
    const chosen = [...(await loadCorpus())].filter(
      ([name]) => options.attacks?.some((start) => name.startsWith(start)) ?? true,
    )
    results.push(await measured(scene, attacker, CONTROL, undefined, 'known', threads, options))
    for (const [name, attack] of chosen) {
      for (const who of attack.who) {
        const result = await measured(scene, attacker, name, attack, who, threads, options)
        process.stdout.write(
          `${name} ${who} ${threads}: ${result.idle.p99.toFixed(3)} ${result.beside.p99.toFixed(3)} ${result.beside.failures} ${result.beside.error}\n`,
        )
        results.push(result)
      }
    }
  } finally {
    attacker.end()
    await scene.stop()
  }
  return results
}

const WARM_UP_SECONDS = 4

/** The median of some attempts if the first one misses the goal. */
async function measured(
  scene: Scene,
  attacker: Attacker,
  name: string,
  attack: Attack | undefined,
  who: Who,
  threads: number,
  options: HostileOptions,
): Promise<Result> {
  const attempts: Result[] = []
  do attempts.push(await attempt(scene, attacker, name, attack, who, threads, options.seconds))
  while (
    attempts.length < options.attempts &&
    isMissed(attempts[0]) &&
    attempts.every(({ beside }) => beside.failures === 0)
  )
  attempts.sort((a, b) => severity(a) - severity(b))
  const failed = attempts.find(({ beside }) => beside.failures > 0)
  const median = failed ?? attempts[Math.floor(attempts.length / 2)]
  if (median === undefined) throw new Error('no attempt')
  return median
}

async function attempt(
  scene: Scene,
  attacker: Attacker,
  name: string,
  attack: Attack | undefined,
  who: Who,
  threads: number,
  seconds: number,
): Promise<Result> {
  const { gateway } = scene.embedded
  const { pid } = gateway
  const idle = await bystander(scene, seconds * IDLE_PART)
  const stallsBefore = await stallsOf(gateway)
  await attacker.begin(attack === undefined ? 'busy' : name, scene.target(who))
  const before = { gateway: cpuSeconds(pid), upstream: cpuSeconds(scene.upstreamPid), at: performance.now() }
  const beside = await bystander(scene, seconds)
  const passed = (performance.now() - before.at) / 1000
  const bytes = residentBytes(pid)
  const gatewayCores = (cpuSeconds(pid) - before.gateway) / passed
  const upstreamCores = (cpuSeconds(scene.upstreamPid) - before.upstream) / passed
  const outcome = await attacker.stop()
  const stalls = (await stallsOf(gateway)) - stallsBefore
  if (outcome.error !== '') throw new Error(`${name}: ${outcome.error}`)
  return { name, who, threads, idle, beside, outcome, bytes, gatewayCores, upstreamCores, stalls }
}

interface LoadLine {
  readonly errors: number
  readonly p99Micros: number
  readonly maxMicros: number
}

/** Connections of its own each time. */
async function bystander(scene: Scene, seconds: number): Promise<Felt> {
  const { cert, key } = scene.bystanderFiles
  const flags = [`-port=${scene.embedded.gateway.port}`, `-host=${HOST}`, `-cert=${cert}`, `-key=${key}`]
  flags.push(`-path=${SMALL_PATH}`, `-connections=${CONNECTIONS}`, `-rate=${RATE}`, `-seconds=${seconds}`)
  const client = new Client(clientProgram(), ['load', ...flags, '-tolerated=1', '-warm-up=200'], 'load')
  try {
    await client.next()
    client.go()
    const { errors, p99Micros, maxMicros } = await client.next<LoadLine>()
    return { p99: p99Micros / 1000, max: maxMicros / 1000, failures: errors, error: '' }
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error)
    return { p99: Number.NaN, max: Number.NaN, failures: RATE * seconds, error: message }
  } finally {
    await client.stop()
  }
}

function ratio({ idle, beside }: Result): number {
  return beside.p99 / idle.p99
}

function isMissed(result: Result | undefined): boolean {
  return result !== undefined && (result.beside.failures > 0 || !(ratio(result) <= GOAL))
}

/** Failures first. */
function severity(result: Result): number {
  return result.beside.failures > 0 ? 1e6 + result.beside.failures : ratio(result)
}

/** The most frequent answers. */
function answersOf(outcome: Outcome | undefined): string {
  const counts = Object.entries(outcome?.counts ?? {}).sort(([, a], [, b]) => b - a)
  return counts
    .slice(0, 3)
    .map(([answer, count]) => `${answer}: ${count}`)
    .join(', ')
}
