// `npm run soak -- [--minutes 20] [--real]`: mixed traffic through a gateway whose upstreams are killed again and again. In the
// end memory, sockets and streams must be back where they began.

import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { startGateway, type TestGateway } from '../harness/gateways/gateway.ts'
import { waitFor } from '../harness/wait.ts'
import { Load, trickle } from './load.ts'
import { type SoakUpstreams, startApiservers, startStubs } from './upstreams.ts'

const MB = 1_000_000
/** Requests, one after the other, before memory is read: a few collections' worth of garbage. */
const TRICKLE_REQUESTS = 3_000
const SAMPLES = 5
/** What memory may have grown by; the heap of a process that has worked is never quite what it was. */
const HEAP_SLACK_BYTES = 15 * MB
const RESIDENT_SLACK_BYTES = 80 * MB
const SOCKET_SLACK = 4

interface State {
  readonly heapBytes: number
  readonly residentBytes: number
  readonly sockets: number
  readonly clientConnections: number
  readonly upstreamConnections: number
  readonly running: number
}

async function main(): Promise<boolean> {
  const { values } = parseArgs({
    options: { minutes: { type: 'string', default: '20' }, real: { type: 'boolean', default: false } },
  })
  const minutes = Number(values.minutes)
  const upstreams = await (values.real ? startApiservers() : startStubs())
  const gateway = await startGateway({ clusters: [upstreams.object] })
  try {
    // The first traffic fills caches and pools, and lets the compiler do its work: it is no leak.
    await runLoad(gateway, upstreams, Math.min(1, minutes / 4), false)
    const before = await quietState(gateway, upstreams)
    const outcomes = await runLoad(gateway, upstreams, minutes, true)
    const after = await quietState(gateway, upstreams)
    return report(before, after, outcomes, gateway)
  } finally {
    await gateway.stop()
    await upstreams.stop()
  }
}

/** Traffic for so many minutes; with `kill`, one upstream after the other is killed and comes back. */
async function runLoad(
  gateway: TestGateway,
  upstreams: SoakUpstreams,
  minutes: number,
  kill: boolean,
): Promise<ReadonlyMap<string, number>> {
  const load = new Load(gateway.port, upstreams)
  const untilMs = performance.now() + minutes * 60_000
  for (let round = 0; performance.now() < untilMs; round++) {
    await sleep(Math.min(10_000, untilMs - performance.now()))
    if (!kill || performance.now() >= untilMs) continue
    const index = round % upstreams.count
    await upstreams.kill(index)
    await sleep(2_000)
    await upstreams.restart(index)
    process.stdout.write('.')
  }
  await load.stop()
  return load.outcomes
}

/** Nothing runs any more; memory is the least of several looks. */
async function quietState(gateway: TestGateway, upstreams: SoakUpstreams): Promise<State> {
  await waitFor('every request and client to be gone', async () => {
    const { running, clientConnections } = await readState(gateway)
    return running === 0 && clientConnections === 0
  })
  const states: State[] = []
  for (let i = 0; i < SAMPLES; i++) {
    const load = new Load(gateway.port, { ...upstreams })
    await load.stop()
    await trickle(load, upstreams, TRICKLE_REQUESTS)
    await waitFor('the client to be gone', async () => (await readState(gateway)).clientConnections === 0)
    states.push(await readState(gateway))
  }
  const least = (field: keyof State): number => Math.min(...states.map((state) => state[field]))
  return {
    heapBytes: least('heapBytes'),
    residentBytes: least('residentBytes'),
    sockets: least('sockets'),
    clientConnections: least('clientConnections'),
    upstreamConnections: least('upstreamConnections'),
    running: least('running'),
  }
}

async function readState(gateway: TestGateway): Promise<State> {
  const metrics = await gateway.metrics()
  const total = (...names: string[]): number => {
    let sum = 0
    for (const line of metrics.split('\n')) {
      const [, name = '', value] = /^([a-z_0-9]+)(?:\{.*\})? ([0-9.e+]+)$/.exec(line) ?? []
      if (names.includes(name)) sum += Number(value)
    }
    return sum
  }
  return {
    heapBytes: total('portcullis_nodejs_heap_size_used_bytes'),
    residentBytes: residentBytes(gateway.pid),
    sockets: openSockets(gateway.pid),
    clientConnections: total('portcullis_client_connections'),
    upstreamConnections: total('portcullis_upstream_connections'),
    running: total('portcullis_apiserver_current_inflight_requests', 'portcullis_apiserver_longrunning_requests'),
  }
}

function openSockets(pid: number): number {
  const folder = `/proc/${pid}/fd`
  return readdirSync(folder).filter((fd) => {
    try {
      return readlinkSync(`${folder}/${fd}`).startsWith('socket:')
    } catch {
      return false // closed meanwhile
    }
  }).length
}

function residentBytes(pid: number): number {
  return Number(/VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0) * 1_024
}

function report(before: State, after: State, outcomes: ReadonlyMap<string, number>, gateway: TestGateway): boolean {
  console.log('\n\noutcomes')
  for (const [outcome, count] of [...outcomes].sort()) console.log(`  ${outcome.padEnd(24)} ${count}`)
  const rows: [string, number, number, number][] = [
    ['heap used, MB', before.heapBytes / MB, after.heapBytes / MB, HEAP_SLACK_BYTES / MB],
    ['resident, MB', before.residentBytes / MB, after.residentBytes / MB, RESIDENT_SLACK_BYTES / MB],
    ['sockets', before.sockets, after.sockets, SOCKET_SLACK],
    ['client connections', before.clientConnections, after.clientConnections, 0],
    ['upstream connections', before.upstreamConnections, after.upstreamConnections, SOCKET_SLACK],
    ['requests and watches running', before.running, after.running, 0],
  ]
  console.log(
    `\n${'when nothing runs'.padEnd(30)} ${'before'.padStart(9)} ${'after'.padStart(9)} ${'may grow'.padStart(9)}`,
  )
  let isGood = true
  for (const [name, was, is, slack] of rows) {
    const isOver = is > was + slack
    if (isOver) isGood = false
    const numbers = [was, is, slack].map((value) => value.toFixed(value % 1 === 0 ? 0 : 1).padStart(9)).join(' ')
    console.log(`${name.padEnd(30)} ${numbers}${isOver ? '  TOO MUCH' : ''}`)
  }
  const problems = problemsIn(outcomes, gateway)
  for (const problem of problems) console.log(problem)
  isGood &&= problems.length === 0
  console.log(isGood ? '\nPASS' : '\nFAIL')
  return isGood
}

function problemsIn(outcomes: ReadonlyMap<string, number>, gateway: TestGateway): string[] {
  const problems: string[] = []
  const lost = [...outcomes].filter(([outcome]) => outcome.endsWith('NO ANSWER'))
  if (lost.length > 0) problems.push(`requests without an answer: ${lost.map(([outcome]) => outcome).join(', ')}`)
  for (const kind of ['read 200', 'list 200', 'watch 200']) {
    const [verb = ''] = kind.split(' ')
    const all = [...outcomes].filter(([outcome]) => outcome.startsWith(verb)).reduce((sum, [, count]) => sum + count, 0)
    const good = outcomes.get(kind) ?? 0
    if (good < all / 2) problems.push(`${kind}: only ${good} of ${all}; one upstream of two was up all the time`)
  }
  if (!gateway.running) problems.push('the gateway ended')
  const bugs = gateway.logs().match(/.*failed inside the gateway.*/g) ?? []
  if (bugs.length > 0) problems.push(`${bugs.length} bugs in the log, the first: ${bugs[0]}`)
  return problems
}

process.exitCode = (await main()) ? 0 : 1
