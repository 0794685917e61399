// The incident that the LIST guard is for: an agent on each of 1,000 nodes lists all pods, again and again. What nodes' Lease
// renewals and an operator's reads take beside that, against what they take alone.

import { setTimeout as sleep } from 'node:timers/promises'
import { type Bench, type Gateway, type GatewayOptions, type LoadSample, Samples } from '../bench.ts'

const AGENTS = 1_000
/** Above what `spec.listGuard` allows by default. */
const LIST_PATH = '/api/v1/pods?bytes=60000000'
const AGENT = 'system:serviceaccount:monitoring:telemetry'
const NODES = 50
const LEASE_PATH = '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/n.%s'
const LEASE_BYTES = 500
const OPERATOR_RATE = 200
const SECONDS = 5
/** The agents' first requests cost a TokenReview each. */
const SETTLE_SECONDS = 3
/** Enough for those who are measured to connect. */
const CONNECT_SECONDS = 1

/** All agents have one address here. */
const FLAGS = ['--max-connections-per-address=0']

interface Sample {
  readonly leases: LoadSample
  readonly operator: LoadSample
}

/** What the agents were answered. */
interface Answers {
  readonly requests: number
  readonly listed: number
  readonly refused: number
  readonly refusedWithRetryAfter: number
  readonly other: number
  readonly bytes: number
}

interface Case {
  readonly name: string
  readonly options: Partial<GatewayOptions>
  readonly rounds: number
}

const GUARDED = 'guard and limit'

export async function fleet(bench: Bench): Promise<void> {
  const cases: readonly Case[] = [
    { name: GUARDED, options: { listGuard: true, costLimit: true }, rounds: bench.rounds },
    { name: 'limit only', options: { costLimit: true }, rounds: 1 },
    { name: 'neither', options: {}, rounds: 1 },
  ]
  const samples = new Samples<Sample>()
  for (const { name, options, rounds } of cases) {
    const upstream = await bench.upstream()
    const gateway = await bench.portcullis({ name, upstreamPort: upstream.port, flags: FLAGS, ...options })
    await bench.warmUp(gateway)
    await learn(bench, gateway)
    for (let round = 0; round < rounds; round++) {
      samples.add(alone(name), await measure(bench, gateway, sleep(CONNECT_SECONDS * 1000)))
      const { sample, answers } = await besideFleet(bench, gateway)
      samples.add(beside(name), sample)
      bench.report.note(`${name}: ${JSON.stringify(answers)} to the agents.`)
      if (name === GUARDED && (answers.listed > 0 || answers.other > 0 || answers.refused < AGENTS))
        throw new Error(`the guard does not refuse: ${JSON.stringify(answers)}`)
    }
    await gateway.stop()
    await upstream.stop()
  }
  bench.report.table(
    `${NODES} nodes' Leases and ${OPERATOR_RATE} reads of an operator a second, alone and beside ${AGENTS} agents that list 60 MB`,
    ['', 'Lease p50 ms', 'Lease p99 ms', 'operator p50 ms', 'operator p99 ms', 'cores used'],
    samples.names.map((name) => [
      name,
      ...FIGURES.map(({ of }) => samples.median(name, of).toFixed(3)),
      samples.median(name, ({ operator }) => operator.cores).toFixed(2),
    ]),
  )
  for (const { id, of } of FIGURES) {
    bench.report.result(`fleet.${id}`, samples.ratio(beside(GUARDED), alone(GUARDED), of))
  }
}

const FIGURES: readonly { readonly id: string; of(sample: Sample): number }[] = [
  { id: 'leases.p50', of: ({ leases }) => leases.p50 },
  { id: 'leases.p99', of: ({ leases }) => leases.p99 },
  { id: 'operator.p50', of: ({ operator }) => operator.p50 },
  { id: 'operator.p99', of: ({ operator }) => operator.p99 },
]

function alone(name: string): string {
  return `${name}, alone`
}

function beside(name: string): string {
  return `${name}, beside the agents`
}

/** One list, by a user that the guard lets pass. */
async function learn(bench: Bench, gateway: Gateway): Promise<void> {
  const client = bench.client(gateway, 'list', ['-connections=1', `-path=${LIST_PATH}`])
  try {
    await client.next()
    client.go()
    await client.next()
  } finally {
    await client.stop()
  }
}

async function measure(bench: Bench, gateway: Gateway, when: Promise<void>): Promise<Sample> {
  const [leases, operator] = await Promise.all([
    bench.load(gateway, {
      identity: 'tokens',
      tokens: 'system:node:n',
      method: 'PUT',
      path: LEASE_PATH,
      body: LEASE_BYTES,
      connections: NODES,
      rate: NODES,
      streams: 1,
      warmUp: NODES,
      seconds: SECONDS,
      when,
    }),
    bench.load(gateway, { connections: 2, rate: OPERATOR_RATE, warmUp: OPERATOR_RATE, seconds: SECONDS, when }),
  ])
  return { leases, operator }
}

async function besideFleet(bench: Bench, gateway: Gateway): Promise<{ sample: Sample; answers: Answers }> {
  const seconds = SETTLE_SECONDS + SECONDS * 2
  const flags = [`-connections=${AGENTS}`, `-tokens=${AGENT}`, `-path=${LIST_PATH}`, `-seconds=${seconds}`]
  const agents = bench.client(gateway, 'fleet', flags, { identity: 'tokens' })
  try {
    await agents.next()
    let over = false
    // Nodes and operator connect before: a gateway that is full would let them in when the agents have gone.
    const settled = sleep(CONNECT_SECONDS * 1000).then(() => {
      agents.go()
      return sleep(SETTLE_SECONDS * 1000)
    })
    const [{ sample, late }, answers] = await Promise.all([
      measure(bench, gateway, settled).then((sample) => ({ sample, late: over })),
      settled
        .then(() => agents.next<Answers>())
        .finally(() => {
          over = true
        }),
    ])
    if (late) bench.report.note('The agents ended before the last answer to the others.')
    return { sample, answers }
  } finally {
    await agents.stop()
  }
}
