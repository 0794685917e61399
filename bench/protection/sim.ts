// `node bench/protection/sim.ts [--runs 10000] [--first 1] [--seed N] [--trace] [--only portcullis] [--skew 30]`: pod protection in
// simulated time. Each seed is a world with its own faults. Portcullis' own ledger and aggregator, and Podseidon's algorithm, meet
// the same worlds; Podseidon once more with its own defaults. With --seed that one run alone; with --trace what happened in it.
// --skew: by how many seconds clocks are wrong at most; --steps: they are set by as much, too. Exit code 1: Portcullis let a deletion through that it must not, or did
// not heal. `--set name=value` changes a setting or breaks a rule, to see that it is needed (SimSettings).

import process from 'node:process'
import { parseArgs } from 'node:util'
import { DEFAULT_CAMPAIGN } from './sim-scenario.ts'
import type { Needless } from './sim-truth.ts'
import { type Algorithm, DEFAULT_SIM_SETTINGS, type Outcome, simulate } from './sim-world.ts'

const DEFAULT_RUNS = 10_000
const SHOWN = 10

const { values } = parseArgs({
  options: {
    runs: { type: 'string' },
    first: { type: 'string' },
    seed: { type: 'string' },
    trace: { type: 'boolean' },
    only: { type: 'string' },
    skew: { type: 'string' },
    steps: { type: 'boolean' },
    set: { type: 'string', multiple: true },
  },
})

interface Row {
  readonly name: string
  readonly algorithm: Algorithm
  readonly podseidonDefaults: boolean
}

const ROWS: readonly Row[] = [
  { name: 'portcullis', algorithm: 'portcullis', podseidonDefaults: false },
  { name: 'podseidon', algorithm: 'podseidon', podseidonDefaults: false },
  { name: 'podseidon-defaults', algorithm: 'podseidon', podseidonDefaults: true },
]

const print = (line: string): void => void process.stdout.write(`${line}\n`)
const maxSkewMs = values.skew === undefined ? DEFAULT_CAMPAIGN.maxSkewMs : Number(values.skew) * 1_000

const steps = values.steps === true

/** `--set clockSkewMs=0`: how a rule of less than it is does. */
const settings = { ...DEFAULT_SIM_SETTINGS, ...Object.fromEntries((values.set ?? []).map(setting)) }

function setting(text: string): [string, unknown] {
  const [name = '', value = ''] = text.split('=')
  if (!Object.hasOwn(DEFAULT_SIM_SETTINGS, name)) {
    throw new Error(`--set ${text}: no such setting; there are ${Object.keys(DEFAULT_SIM_SETTINGS).join(', ')}`)
  }
  return [name, JSON.parse(value)]
}

function line(name: string, sums: Sums): string {
  const percent = sums.asked === 0 ? 0 : (100 * sums.falseRefusals) / sums.asked
  const cells = [
    sums.runs,
    sums.asked,
    sums.admitted,
    sums.overAdmissions,
    sums.badRuns,
    sums.falseRefusals,
    `${percent.toFixed(2)}%`,
    (sums.falseRefusals / Math.max(1, sums.admitted)).toFixed(2),
    sums.ledgerWrites,
    sums.aggregatorWrites,
  ]
  return `${name.padEnd(19)}${cells.map((cell) => String(cell).padStart(16)).join('')}`
}

type Sums = { runs: number; badRuns: number; readonly needless: Map<Needless, number> } & Record<
  'asked' | 'admitted' | 'overAdmissions' | 'falseRefusals' | 'ledgerWrites' | 'aggregatorWrites',
  number
>

function add(sums: Sums, outcome: Outcome): void {
  sums.runs++
  if (outcome.overAdmissions > 0) sums.badRuns++
  sums.asked += outcome.asked
  sums.admitted += outcome.admitted
  sums.overAdmissions += outcome.overAdmissions
  for (const [reason, count] of outcome.needless) {
    sums.falseRefusals += count
    sums.needless.set(reason, (sums.needless.get(reason) ?? 0) + count)
  }
  sums.ledgerWrites += outcome.ledgerWrites
  sums.aggregatorWrites += outcome.aggregatorWrites
}

const NOTHING = { runs: 0, badRuns: 0, asked: 0, admitted: 0, overAdmissions: 0, falseRefusals: 0 }

/** Adds to `failed` what must not be. */
async function campaign(row: Row, first: number, runs: number, failed: string[]): Promise<Sums> {
  const sums: Sums = { ...NOTHING, needless: new Map(), ledgerWrites: 0, aggregatorWrites: 0 }
  const { algorithm, podseidonDefaults } = row
  for (let seed = first; seed < first + runs; seed++) {
    const options = {
      settings,
      campaign: { maxSkewMs, steps, podseidonDefaults },
      ...(values.trace === true && { print }),
    }
    const outcome = await simulate(seed, algorithm, options)
    add(sums, outcome)
    if (algorithm !== 'portcullis') continue
    for (const text of outcome.explanations.slice(0, 1)) failed.push(`seed ${seed}: over-admission at ${text}`)
    if (outcome.leftover !== '') failed.push(`seed ${seed}: not healed: ${outcome.leftover}`)
  }
  return sums
}

async function main(): Promise<number> {
  const seed = values.seed === undefined ? undefined : Number(values.seed)
  const runs = seed === undefined ? Number(values.runs ?? DEFAULT_RUNS) : 1
  const first = seed ?? Number(values.first ?? 1)
  const failed: string[] = []
  const table: string[] = []
  for (const row of ROWS.filter(({ name }) => values.only === undefined || name === values.only)) {
    const sums = await campaign(row, first, runs, failed)
    table.push(line(row.name, sums))
    const reasons = [...sums.needless].sort(([, a], [, b]) => b - a).map(([reason, count]) => `${reason} ${count}`)
    table.push(`                   false refusals: ${reasons.join(', ')}`)
  }
  const head = [
    'runs',
    'asked',
    'admitted',
    'over-admissions',
    'runs with one',
    'false refusals',
    'share of asked',
    'a let through',
    'ledger writes',
    'aggr. writes',
  ]
  print(
    `seeds ${first} to ${first + runs - 1}, clocks wrong by ${maxSkewMs / 1_000} s at most${steps ? ', and set' : ''}`,
  )
  print(`${' '.repeat(19)}${head.map((cell) => cell.padStart(16)).join('')}`)
  for (const text of table) print(text)
  for (const text of failed.slice(0, SHOWN)) print(text)
  if (failed.length > SHOWN) print(`and ${failed.length - SHOWN} more`)
  return failed.length === 0 ? 0 : 1
}

process.exitCode = await main()
