// How exactly three replicas share one limit of 300 requests a second, through a Redis that is killed and comes back, and
// with one replica killed. Each replica is a process; demand is twice the limit. Run: node bench/micro/global-limits.ts [seconds]

import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { mostInWindow, startReplica } from '../../test/harness/gateways/limit-replica.ts'
import { startRedis } from '../../test/harness/redis/redis.ts'

const QPS = 300
const LIMIT = { qps: QPS, burst: QPS }
const SCHEMA = { name: 'a', strategy: 'globalCount', tokenBucket: LIMIT, globalTokenBucket: LIMIT } as const
const REPLICAS = 3
const REPORT_MS = 10

interface Order {
  readonly demand: number
}

if (process.argv[2] === 'replica') await runReplica(process.argv[3] ?? '')
else await measure(Number(process.argv[2] ?? 60))

/** In a process of its own: reports when it admitted what, until it is killed. */
async function runReplica(url: string): Promise<void> {
  const replica = startReplica({ url, expectedReplicas: REPLICAS, name: `replica-${process.pid}` }, SCHEMA)
  let reported = 0
  process.on('message', ({ demand }: Order) => replica.demand(demand))
  const reports = setInterval(() => {
    if (process.connected) process.send?.(replica.admitted.slice(reported))
    reported = replica.admitted.length
  }, REPORT_MS)
  await once(process, 'disconnect')
  clearInterval(reports)
  await replica.stop()
}

async function measure(seconds: number): Promise<void> {
  const redis = await startRedis()
  const admitted: number[] = []
  const replicas = Array.from({ length: REPLICAS }, () => {
    const child = fork(import.meta.filename, ['replica', redis.url])
    child.on('message', (times: readonly number[]) => void admitted.push(...times))
    return child
  })
  await Promise.all(replicas.map((child) => once(child, 'message')))
  await sleep(2_000)
  const startMs = machineMs()
  demand(replicas, (2 * QPS) / REPLICAS)
  const until = (part: number): Promise<void> => sleep(Math.max(0, startMs + seconds * 1000 * part - machineMs()))
  const at = (): string => `${((machineMs() - startMs) / 1000).toFixed(1)} s`
  await until(1 / 3)
  await redis.kill()
  console.log(`${at()}: Redis killed`)
  await until(1 / 2)
  await redis.restart()
  console.log(`${at()}: Redis is back`)
  await until(2 / 3)
  const [victim, ...left] = replicas
  victim?.kill('SIGKILL')
  demand(left, (2 * QPS) / left.length)
  console.log(`${at()}: one replica killed`)
  await until(1)
  demand(left, 0)
  await sleep(100)
  for (const child of left) child.disconnect()
  await redis.stop()
  print(
    admitted.map((time) => time - startMs),
    seconds,
  )
}

function demand(replicas: readonly ChildProcess[], perSecond: number): void {
  for (const child of replicas) child.send({ demand: perSecond } satisfies Order)
}

function print(times: readonly number[], seconds: number): void {
  const counted = times.filter((time) => time >= 0 && time < seconds * 1000)
  const wanted = QPS * seconds
  const percent = (value: number, of: number): string => `${((100 * value) / of - 100).toFixed(2)} %`
  console.log(`admitted in ${seconds} s: ${counted.length} of ${wanted} (${percent(counted.length, wanted)})`)
  // The burst is spent first: a bucket that was not used is full.
  const steady = counted.filter((time) => time >= 1_000)
  console.log(
    `most in any sliding second: ${mostInWindow(counted, 1_000)}; after the first: ${mostInWindow(steady, 1_000)}`,
  )
  const most = mostInWindow(steady, 1_000)
  console.log(`  that is ${percent(most, QPS)} of the limit`)
  const bySecond = new Map<number, number>()
  for (const time of counted) bySecond.set(Math.floor(time / 1000), (bySecond.get(Math.floor(time / 1000)) ?? 0) + 1)
  console.log(`by second: ${Array.from({ length: seconds }, (_, second) => bySecond.get(second) ?? 0).join(' ')}`)
}

function machineMs(): number {
  const [wholeSeconds, nanoseconds] = process.hrtime()
  return wholeSeconds * 1000 + nanoseconds / 1e6
}
