// What it costs to ask the command for its version: Node, and the modules that are loaded though no command runs.

import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import process from 'node:process'
import { type Bench, Samples } from '../bench.ts'

/** The kernel counts the CPU of children in hundredths of a second. */
const RUNS = 10

export async function start(bench: Bench): Promise<void> {
  const cases = [
    { name: 'node -e 0', args: ['-e', '0'] },
    { name: 'portcullis --version', args: [join(bench.root, 'src/main.ts'), '--version'] },
  ]
  const samples = new Samples<number>()
  for (let round = 0; round < bench.rounds; round++) {
    for (const { name, args } of cases) samples.add(name, cpuOf(args))
  }
  bench.report.table(
    'A start from the sources, nothing done',
    ['', 'CPU ms'],
    samples.names.map((name) => [name, samples.median(name, same).toFixed(0)]),
  )
  bench.report.result('start', samples.ratio('portcullis --version', 'node -e 0', same))
}

const same = (value: number): number => value

/** CPU of one run, milliseconds. */
function cpuOf(args: readonly string[]): number {
  const before = childSeconds()
  for (let run = 0; run < RUNS; run++) {
    const { status, stderr } = spawnSync(process.execPath, args, { stdio: ['ignore', 'ignore', 'pipe'] })
    if (status !== 0) throw new Error(`${args.join(' ')} ended with ${status}: ${stderr}`)
  }
  return ((childSeconds() - before) * 1000) / RUNS
}

/** CPU of the children that this process has waited for, user and system (proc(5), cutime and cstime). */
function childSeconds(): number {
  const fields = readFileSync('/proc/self/stat', 'utf8').split(') ')[1]?.split(' ') ?? []
  return (Number(fields[13]) + Number(fields[14])) / 100
}
