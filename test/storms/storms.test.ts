// Two thousand clients that come at once, or come back at once after an apiserver or the gateway was restarted: client-go's own
// reflectors, each with a TLS connection of its own. No client is lost, none does the work twice, and those that were there go on.

import assert from 'node:assert/strict'
import { after, before, type TestContext, test } from 'node:test'
import { h2Connect } from '../harness/clients/h2-client.ts'
import { SteadyReads } from '../harness/clients/steady-reads.ts'
import { PATIENT } from '../harness/patience.ts'
import { cpuSeconds, residentBytes } from '../harness/storms/cpu-seconds.ts'
import type { Crowd, CrowdStats } from '../harness/storms/storm-program.ts'
import { allWatching, STORM_HOST, STORM_PATH, StormWorld } from '../harness/storms/storm-world.ts'
import { waitFor } from '../harness/wait.ts'

/** More than the handshakes that a thread has in progress (MAX_IN_PROGRESS, 1,024). `npm run bench` has 5,000. */
const CLIENTS = 2_000
/** Clients at once, of those that come one after the other: enough to keep the gateway busy. */
const AT_ONCE = 16
/** What a storm may cost of what the same work costs in turns: the goal for the time, which is the CPU's where it has nothing else to do. */
const MOST_CPU = 1.3

/**
 * Handshakes wait for their turn. On a machine so busy that it takes longer than client-go waits (10 s), it tries again: that is then what
 * it is told, and it has cost no handshake.
 */
const AT_THE_DOOR = /^(list|watch) (200|429 Retry-After \d+|TLS handshake timeout|connection reset|EOF)$/
const BACK_AFTER_RESTART =
  /^(list|watch) (200|connection refused|connection reset|EOF|429 Retry-After \d+|TLS handshake timeout)$|^watch ended/

let world: StormWorld
let crowd: Crowd
/** CPU seconds of the gateway for handshake, LIST and WATCH of all clients in turns. */
let inTurns = 0

before(async () => {
  world = await StormWorld.create()
  await world.startUpstream()
  await world.startGateway()
}, PATIENT)
after(() => world.stop())

function establishedReads(t: TestContext): SteadyReads {
  const connect = () => h2Connect({ port: world.port, serverName: STORM_HOST, certificate: world.user })
  const reads = new SteadyReads(connect, STORM_HOST, [{ path: STORM_PATH }])
  reads.start()
  t.after(() => reads.stop())
  return reads
}

/** Every client has a watch, and the storm left none behind upstream. */
async function assertNoneLost(stats: CrowdStats): Promise<void> {
  assert.equal(stats.watching, stats.clients, `without a watch: ${stats.missing}`)
  await waitFor('as many watches upstream as clients', async () => {
    const { watching } = await world.upstream.command('stats')
    return watching === stats.clients
  })
}

/** Whatever was not served was refused at once, or told when to come back. */
function assertAnswered({ answers }: CrowdStats, defined: RegExp): void {
  const others = Object.entries(answers).filter(([answer]) => !defined.test(answer))
  assert.deepEqual(others, [])
}

function report(t: TestContext, what: string, stats: CrowdStats, seconds: number): void {
  const { handshakes, lists, watches, dials } = stats
  t.diagnostic(
    `${what}: ${seconds.toFixed(2)} s of CPU, all back after ${(stats.backLast / 1000).toFixed(2)} s, p50 ${(stats.backP50 / 1000).toFixed(2)} s; ` +
      `${dials} connections, ${handshakes} handshakes, ${lists} lists, ${watches} watches; ${JSON.stringify(stats.answers)}`,
  )
}

test('clients that come in turns are what storms are compared with', PATIENT, async (t) => {
  const { pid } = world.gateway
  crowd = await world.crowd({ clients: CLIENTS })
  const before = cpuSeconds(pid)
  const memory = residentBytes(pid)
  const stats = await crowd.command(`start ${AT_ONCE}`)
  inTurns = cpuSeconds(pid) - before
  report(t, 'in turns', stats, inTurns)
  t.diagnostic(`${((residentBytes(pid) - memory) / CLIENTS / 1024).toFixed(0)} KiB of memory for each`)
  await assertNoneLost(stats)
  assert.deepEqual([stats.handshakes, stats.lists, stats.watches], [CLIENTS, CLIENTS, CLIENTS])
})

test('an apiserver restarts: every client lists again on the connection that it has', PATIENT, async (t) => {
  const { pid } = world.gateway
  const reads = establishedReads(t)
  await waitFor('reads', () => reads.whole > 100)
  await crowd.command('mark')
  await world.killUpstream()
  await waitFor('every watch to end', async () => (await crowd.command('stats')).watching === 0)
  const before = cpuSeconds(pid)
  await world.startUpstream()
  await allWatching(crowd)
  const whole = reads.whole
  await waitFor('reads as before', () => reads.whole > whole + 100)
  const stats = await crowd.command('stats')
  report(t, 'apiserver restarted', stats, cpuSeconds(pid) - before)
  await assertNoneLost(stats)
  assert.equal(stats.handshakes, 0)
  await reads.stop()
  t.diagnostic(`established user: ${JSON.stringify(reads.failures())}`)
  // While it is away: what had been sent to it, and what no server can be asked for. Then lists are let in one after the other.
  assertAnswered(stats, /^(list|watch) (200|429 Retry-After \d+|502|503( Retry-After \d+)?)$|^watch ended/)
  assert.deepEqual(
    reads.failures().filter(([outcome]) => !/^(429|502|503|cut off)$/.test(outcome)),
    [],
  )
  const { lists } = await world.upstream.command('stats')
  assert.ok(lists <= 1.1 * CLIENTS + reads.whole, `${lists} lists`)
})

test('the gateway is killed and starts again: one handshake for each client', PATIENT, async (t) => {
  await crowd.command('mark')
  await world.killGateway()
  const { pid } = await world.startGateway()
  const before = cpuSeconds(pid)
  const stats = await allWatching(crowd)
  const seconds = cpuSeconds(pid) - before
  report(t, 'gateway killed', stats, seconds)
  await assertNoneLost(stats)
  assertAnswered(stats, BACK_AFTER_RESTART)
  assert.ok(stats.handshakes <= 1.1 * CLIENTS, `${stats.handshakes} handshakes`)
  assert.ok(seconds <= MOST_CPU * inTurns, `${seconds} s of CPU, ${inTurns} s in turns`)
})

test('newcomers all at once beside an established user', PATIENT, async (t) => {
  const { pid } = world.gateway
  await crowd.kill()
  crowd = await world.crowd({ clients: CLIENTS })
  const reads = establishedReads(t)
  await waitFor('reads', () => reads.whole > 100)
  const before = cpuSeconds(pid)
  await crowd.command('start')
  const stats = await allWatching(crowd)
  const seconds = cpuSeconds(pid) - before
  await reads.stop()
  report(t, 'newcomers', stats, seconds)
  await assertNoneLost(stats)
  assertAnswered(stats, AT_THE_DOOR)
  assert.deepEqual(reads.failures(), [])
  assert.ok(stats.handshakes <= 1.1 * CLIENTS, `${stats.handshakes} handshakes`)
  const lists = stats.answers['list 200'] ?? 0
  assert.ok(lists <= 1.1 * CLIENTS, `${lists} lists`)
})
