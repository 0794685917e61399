// Fails when a request costs more than 1.1 x what it cost at the last commit whose cost is committed (bench/gate.json): both are measured in one
// run, in turns, since numbers of two machines, or of two hours, cannot be compared. `npm test` runs it.
// `node bench/gate.ts --accept` writes the present commit there: with the reason in the message, where a request is to cost more.

import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import process from 'node:process'
import { Bench } from './load/bench.ts'
import { inPriority } from './load/priority.ts'
import { stopAll } from './load/processes.ts'
import { Report } from './load/report.ts'
import { against, type Compared } from './load/rows/against.ts'

const ROOT = join(import.meta.dirname, '..')
const FILE = join(import.meta.dirname, 'gate.json')
/** The most that a request may cost, in parts of the accepted commit's CPU. */
const MOST = 1.1
/** A second look, longer, at what the first one found too dear: a busy machine must not fail a change that costs nothing. */
const ROUNDS = [8, 20]

interface Accepted {
  readonly commit: string
  /** What a request cost there, x HAProxy in the same run: for readers. */
  readonly haproxy: number
}

const out = (line: string): void => void process.stdout.write(`${line}\n`)

if (inPriority()) process.exit(await main())

async function main(): Promise<number> {
  const accepted = JSON.parse(readFileSync(FILE, 'utf8')) as Accepted
  const folder = mkdtempSync(join(tmpdir(), 'portcullis-gate-'))
  const base = join(folder, accepted.commit)
  try {
    const problem = checkOut(accepted.commit, base)
    if (problem !== '') {
      out(`not measured: ${problem}`)
      return 0
    }
    return await compare(accepted, base)
  } finally {
    await stopAll()
    git('worktree', 'remove', '--force', base)
    rmSync(folder, { recursive: true, force: true })
  }
}

async function compare(accepted: Accepted, base: string): Promise<number> {
  let found: Compared | undefined
  for (const rounds of ROUNDS) {
    found = await measure(base, rounds)
    out(`\n${found.toOther.toFixed(2)} x the CPU per request of ${accepted.commit}; ${MOST} x is the most`)
    if (found.toOther <= MOST) break
  }
  if (found === undefined) return 1
  if (process.argv.includes('--accept')) {
    accept(found)
    return 0
  }
  if (found.toOther > MOST) {
    out(
      'A request has become dearer: find out why (npm run bench -- --profile), or accept it (bench/README.md, "The gate").',
    )
    return 1
  }
  return 0
}

async function measure(base: string, rounds: number): Promise<Compared> {
  const bench = new Bench(rounds, new Report(), ROOT)
  try {
    return await against(bench, base)
  } finally {
    await stopAll()
    bench.material.remove()
  }
}

/** @returns why it cannot be; '' = it is there, and can be run */
function checkOut(commit: string, folder: string): string {
  const added = git('worktree', 'add', '--detach', folder, commit)
  if (added.status !== 0) return `${commit} is not in this clone (git fetch --unshallow): ${added.stderr.trim()}`
  const lock = 'package-lock.json'
  if (readFileSync(join(folder, lock), 'utf8') === readFileSync(join(ROOT, lock), 'utf8')) {
    symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'))
    return ''
  }
  const { status, stderr } = spawnSync('npm', ['ci'], { cwd: folder, encoding: 'utf8' })
  return status === 0 ? '' : `npm ci failed there: ${stderr.trim()}`
}

function accept({ toHAProxy }: Compared): void {
  const commit = git('rev-parse', '--short=8', 'HEAD').stdout.trim()
  const accepted: Accepted = { commit, haproxy: Number(toHAProxy.toFixed(2)) }
  writeFileSync(FILE, `${JSON.stringify(accepted, null, 2)}\n`)
  out(`accepted: ${commit}, ${accepted.haproxy} x HAProxy`)
}

function git(...args: string[]): { readonly status: number | null; readonly stdout: string; readonly stderr: string } {
  return spawnSync('git', args, { cwd: ROOT, encoding: 'utf8' })
}
