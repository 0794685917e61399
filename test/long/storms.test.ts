// Storms that take too long for every change: as many clients as the open files of a process allow, tokens that have to be reviewed at a pace,
// a replica that drains, and a real kube-apiserver.

import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { type TestContext, test } from 'node:test'
import { startCluster } from '../harness/clusters/cluster.ts'
import { cpuSeconds, residentBytes } from '../harness/storms/cpu-seconds.ts'
import type { Crowd, CrowdStats } from '../harness/storms/storm-program.ts'
import { allWatching, StormWorld, type StormWorldOptions } from '../harness/storms/storm-world.ts'
import { waitFor } from '../harness/wait.ts'

const CLIENTS = 2_000
/** The gateway needs some of its open files for connections to upstream, 100 watches on each, and for itself. */
const FILES = Number(execFileSync('sh', ['-c', 'ulimit -n']).toString())
const STRANGERS = 4_000
const MANY_CLIENTS = Math.min(20_000, Math.floor((FILES * 0.9 - STRANGERS) / 1_000) * 1_000)
/** A minute for each thousand: ten times what one core needs. */
const MANY_BACK_MS = 60_000 * (MANY_CLIENTS / 1_000)
/** A place for each as a user, beside those of strangers: with fewer they would come back for ever. */
const MANY_FLAGS = [`--max-connections=${MANY_CLIENTS + STRANGERS}`, `--max-unauthenticated-connections=${STRANGERS}`]

async function worldOf(t: TestContext, options: StormWorldOptions = {}): Promise<StormWorld> {
  const world = await StormWorld.create(options)
  t.after(() => world.stop())
  return world
}

function report(t: TestContext, what: string, stats: readonly CrowdStats[], seconds: number, bytes = 0): void {
  const sum = (key: 'clients' | 'dials' | 'handshakes' | 'lists' | 'watches'): number =>
    stats.reduce((all, one) => all + one[key], 0)
  const last = Math.max(...stats.map(({ backLast }) => backLast)) / 1000
  t.diagnostic(
    `${what}: ${sum('clients')} clients, ${seconds.toFixed(1)} s of CPU, all back after ${last.toFixed(1)} s, ${(bytes / sum('clients') / 1024).toFixed(0)} KiB each; ` +
      `${sum('dials')} connections, ${sum('handshakes')} handshakes, ${sum('lists')} lists, ${sum('watches')} watches; ${JSON.stringify(stats.map(({ answers }) => answers))}`,
  )
}

const all = (crowds: readonly Crowd[], line: string): Promise<CrowdStats[]> =>
  Promise.all(crowds.map((crowd) => crowd.command(line)))

function assertOneHandshakeEach(stats: readonly CrowdStats[]): void {
  for (const { handshakes, clients, watching } of stats) {
    assert.equal(watching, clients)
    assert.ok(handshakes <= 1.1 * clients, `${handshakes} handshakes of ${clients} clients`)
  }
}

test(`${MANY_CLIENTS} clients arrive at once, and come back at once after kill -9 (long)`, async (t) => {
  const world = await worldOf(t, { args: MANY_FLAGS })
  await world.startUpstream()
  let { pid } = await world.startGateway()
  const clients = MANY_CLIENTS / 2
  const crowds = [await world.crowd({ clients }), await world.crowd({ clients, first: clients })]
  let before = cpuSeconds(pid)
  const empty = residentBytes(pid)
  await all(crowds, 'start')
  let stats = await Promise.all(crowds.map((crowd) => allWatching(crowd, MANY_BACK_MS)))
  report(t, 'arrived', stats, cpuSeconds(pid) - before, residentBytes(pid) - empty)
  assertOneHandshakeEach(stats)

  await all(crowds, 'mark')
  await world.killGateway()
  pid = (await world.startGateway()).pid
  before = cpuSeconds(pid)
  stats = await Promise.all(crowds.map((crowd) => allWatching(crowd, MANY_BACK_MS)))
  report(t, 'back', stats, cpuSeconds(pid) - before)
  assertOneHandshakeEach(stats)
})

test('tokens of 2,000 users are reviewed at a pace, and who waits is told when to come back (long)', async (t) => {
  const world = await worldOf(t, { spec: { authentication: { tokenSuccessTTLSeconds: 1 } } })
  await world.startUpstream()
  await world.startGateway()
  const crowd = await world.crowd({ clients: CLIENTS, tokens: 'storm' })
  await crowd.command('start 16')
  await crowd.command('mark')
  await world.killUpstream()
  await waitFor('every watch to end', async () => (await crowd.command('stats')).watching === 0)
  // Seconds for all, of one thread with 64 reviews at a time: more than a request may wait.
  await world.startUpstream({ reviewMs: 500 })
  const stats = await allWatching(crowd)
  report(t, 'tokens', [stats], 0)
  // 503 while the apiserver is away; never a 401, and never a timeout.
  const others = Object.keys(stats.answers).filter(
    (answer) => !/^(list|watch) (200|429 .*|502|503)$|^watch ended/.test(answer),
  )
  assert.deepEqual(others, [])
  assert.equal(stats.handshakes, 0)
  const { reviews } = await world.upstream.command('stats')
  assert.ok(reviews <= 3 * CLIENTS, `${reviews} reviews`)
})

test('one of two replicas drains: its clients are on the other one, with their tokens (long)', async (t) => {
  const world = await worldOf(t)
  await world.startUpstream({ reviewMs: 50 })
  await world.startGateway()
  const other = await world.startReplica()
  const servers = [`127.0.0.1:${world.port}`, `127.0.0.1:${other.port}`]
  const crowd = await world.crowd({ clients: CLIENTS, tokens: 'storm', servers })
  await crowd.command('start 16')
  await crowd.command('mark')
  await world.drainGateway()
  const stats = await waitFor('those who were there to be back', async () => {
    const now = await crowd.command('stats')
    return now.watching === now.clients && now.back >= CLIENTS / 2 && now
  })
  report(t, 'drained', [stats], 0)
  assert.ok(stats.handshakes <= (1.1 * CLIENTS) / 2, `${stats.handshakes} handshakes`)
  const others = Object.keys(stats.answers).filter(
    (answer) => !/^(list|watch) (200|429 .*|GOAWAY|connection re.*|EOF)$|^watch ended: (EOF|GOAWAY)/.test(answer),
  )
  assert.deepEqual(others, [])
})

test('sessions that are offered for resumption are not resumed (long)', async (t) => {
  const world = await worldOf(t)
  await world.startUpstream()
  await world.startGateway()
  const crowd = await world.crowd({ clients: CLIENTS, resume: true })
  await crowd.command('start 16')
  const stats = await crowd.command('cut 16')
  report(t, 'resumption', [stats], 0)
  assert.deepEqual([stats.handshakes, stats.resumed], [CLIENTS, 0])
})

test('a real kube-apiserver is killed and starts again under 2,000 reflectors (long)', async (t) => {
  const cluster = await startCluster()
  t.after(() => cluster.stop())
  await cluster.kubectl(['create', 'namespace', 'storm'])
  // "view" has no rules here: the controller manager would have to aggregate them.
  await cluster.kubectl(['create', 'clusterrole', 'storm', '--verb=list,watch', '--resource=configmaps'])
  await cluster.kubectl(['create', 'clusterrolebinding', 'storm', '--clusterrole=storm', '--group=storm'])
  const [apiserver] = cluster.apiservers
  assert.ok(apiserver)
  const world = await worldOf(t, {
    real: { url: apiserver.url, caPem: cluster.ca.certPem, token: cluster.gatewayUser.token },
  })
  const { pid } = await world.startGateway()
  const crowd = await world.crowd({ clients: CLIENTS })
  const before = cpuSeconds(pid)
  await crowd.command('start')
  report(t, 'arrived', [await allWatching(crowd)], cpuSeconds(pid) - before)
  await crowd.command('mark')
  await apiserver.kill('SIGKILL')
  await waitFor('every watch to end', async () => (await crowd.command('stats')).watching === 0)
  const killed = cpuSeconds(pid)
  await apiserver.restart()
  const stats = await allWatching(crowd)
  report(t, 'apiserver restarted', [stats], cpuSeconds(pid) - killed)
  assert.equal(stats.handshakes, 0)
})
