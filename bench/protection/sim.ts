// `node bench/protection/sim.ts [--runs 10000] [--first 1] [--seed N] [--trace] [--only portcullis]`: pod protection in simulated
// time. Each seed is a world with its own faults; Portcullis' rules (src/core/protection) and Podseidon's algorithm meet the same
// ones. With --seed that one run alone; with --trace what happened in it. Exit code 1: Portcullis let a deletion through that it
// must not, or did not heal. `--set name=value` changes a rule, to see that it is needed (SimSettings).

import process from 'node:process'
import { parseArgs } from 'node:util'
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
    set: { type: 'string', multiple: true },
  },
})

const print = (line: string): void => void process.stdout.write(`${line}\n`)

/** `--set clockSkewMs=0`: how a rule of less than it is does. */
const settings = { ...DEFAULT_SIM_SETTINGS, ...Object.fromEntries((values.set ?? []).map(setting)) }

function setting(text: string): [string, unknown] {
  const [name = '', value = ''] = text.split('=')
  if (!Object.hasOwn(DEFAULT_SIM_SETTINGS, name)) {
    throw new Error(`--set ${text}: no such setting; there are ${Object.keys(DEFAULT_SIM_SETTINGS).join(', ')}`)
  }
  return [name, JSON.parse(value)]
}

function row(algorithm: Algorithm, sums: Sums): string {
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
  return `${algorithm.padEnd(11)}${cells.map((cell) => String(cell).padStart(16)).join('')}`
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

function main(): number {
  const seed = values.seed === undefined ? undefined : Number(values.seed)
  const runs = seed === undefined ? Number(values.runs ?? DEFAULT_RUNS) : 1
  const first = seed ?? Number(values.first ?? 1)
  const both: Algorithm[] = ['portcullis', 'podseidon']
  const algorithms = both.filter((algorithm) => algorithm.startsWith(values.only ?? ''))
  const failed: string[] = []
  const table: string[] = []
  for (const algorithm of algorithms) {
    const sums: Sums = {
      runs: 0,
      badRuns: 0,
      needless: new Map(),
      asked: 0,
      admitted: 0,
      overAdmissions: 0,
      falseRefusals: 0,
      ledgerWrites: 0,
      aggregatorWrites: 0,
    }
    for (let i = first; i < first + runs; i++) {
      const outcome = simulate(i, algorithm, settings, values.trace === true ? print : undefined)
      add(sums, outcome)
      if (algorithm !== 'portcullis') continue
      for (const text of outcome.explanations.slice(0, 1)) failed.push(`seed ${i}: over-admission at ${text}`)
      if (outcome.leftover !== '') failed.push(`seed ${i}: not healed: ${outcome.leftover}`)
    }
    table.push(row(algorithm, sums))
    const reasons = [...sums.needless].sort(([, a], [, b]) => b - a).map(([reason, count]) => `${reason} ${count}`)
    table.push(`           false refusals: ${reasons.join(', ')}`)
  }
  const head = [
    'runs',
    'asked',
    'admitted',
    'over-admissions',
    'runs with one',
    'false refusals',
    'of asked',
    'a let through',
    'ledger writes',
    'aggr. writes',
  ]
  print(`${' '.repeat(11)}${head.map((cell) => cell.padStart(16)).join('')}`)
  for (const line of table) print(line)
  for (const line of failed.slice(0, SHOWN)) print(line)
  if (failed.length > SHOWN) print(`and ${failed.length - SHOWN} more`)
  return failed.length === 0 ? 0 : 1
}

process.exitCode = main()
