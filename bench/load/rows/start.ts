// What a start costs, of the bundle (npm run build) and of the sources: the command that is asked for its version, and a gateway until
// it is ready.

import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import process from 'node:process'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Bench, Samples } from '../bench.ts'
import { freePort } from '../processes.ts'

/** The kernel counts the CPU of children in hundredths of a second. */
const RUNS = 10
const READY_WITHIN_MS = 60_000

/** A program that can be started, by its name in the table. */
interface Program {
  readonly name: string
  readonly main: string
}

export async function start(bench: Bench): Promise<void> {
  const dir = mkdtempSync(join(tmpdir(), 'portcullis-start-'))
  try {
    run([join(bench.root, 'build/build.ts'), '--out', join(dir, 'dist')])
    const bundle: Program = { name: 'bundle', main: join(dir, 'dist/main.mjs') }
    const sources: Program = { name: 'sources', main: join(bench.root, 'src/main.ts') }
    version(bench, bundle, sources)
    await serve(bench, dir, bundle, sources)
  } finally {
    rmSync(dir, { recursive: true, force: true })
  }
}

function version(bench: Bench, ...programs: readonly Program[]): void {
  const cases = [
    { name: 'node -e 0', args: ['-e', '0'] },
    ...programs.map(({ name, main }) => ({ name: `--version of the ${name}`, args: [main, '--version'] })),
  ]
  const samples = new Samples<number>()
  for (let round = 0; round < bench.rounds; round++) {
    for (const { name, args } of cases) samples.add(name, cpuOf(args))
  }
  bench.report.table(
    'A start, nothing done',
    ['', 'CPU ms'],
    samples.names.map((name) => [name, samples.median(name, same).toFixed(0)]),
  )
  bench.report.result('start', samples.ratio('--version of the bundle', 'node -e 0', same))
}

interface Ready {
  readonly ms: number
  readonly bytes: number
}

/** Starts again with what the first start has written: making keys costs both the same, and chance decides how much. */
async function serve(bench: Bench, dir: string, bundle: Program, sources: Program): Promise<void> {
  const samples = new Samples<Ready>()
  for (let round = 0; round < bench.rounds; round++) {
    for (const { name, main } of [bundle, sources]) {
      const data = join(dir, name)
      if (round === 0) await untilReady(main, data)
      samples.add(name, await untilReady(main, data))
    }
  }
  const ms = ({ ms: value }: Ready): number => value
  const bytes = ({ bytes: value }: Ready): number => value
  bench.report.table(
    'serve until it is ready, embedded API server, two threads',
    ['', 'ms', 'MB'],
    samples.names.map((name) => [
      name,
      samples.median(name, ms).toFixed(0),
      (samples.median(name, bytes) / 1e6).toFixed(0),
    ]),
  )
  bench.report.result('start-serve', samples.ratio('bundle', 'sources', ms))
  bench.report.result('start-memory', samples.ratio('bundle', 'sources', bytes))
}

async function untilReady(main: string, data: string): Promise<Ready> {
  const [port, admin, control] = [await freePort(), await freePort(), await freePort()]
  const listen = [`--listen=127.0.0.1:${port}`, `--admin-listen=127.0.0.1:${admin}`]
  const args = [main, 'serve', '--threads=2', `--data-dir=${data}`, ...listen, `--control-listen=127.0.0.1:${control}`]
  const started = performance.now()
  const gateway = spawn(process.execPath, args, { stdio: ['ignore', 'ignore', 'pipe'] })
  let said = ''
  gateway.stderr.on('data', (chunk: Buffer) => {
    said += chunk.toString()
  })
  const ended = once(gateway, 'exit')
  try {
    // The line that it prints for people; asking /readyz again and again would take CPU from it.
    while (!said.includes('portcullis is ready')) {
      if (gateway.exitCode !== null || performance.now() - started > READY_WITHIN_MS)
        throw new Error(`${main}: ${said}`)
      await sleep(2)
    }
    const ms = performance.now() - started
    const status = readFileSync(`/proc/${gateway.pid ?? 0}/status`, 'utf8')
    return { ms, bytes: Number(/^VmRSS:\s+(\d+) kB/m.exec(status)?.[1] ?? Number.NaN) * 1024 }
  } finally {
    gateway.kill('SIGTERM')
    await ended
  }
}

const same = (value: number): number => value

/** CPU of one run, milliseconds. */
function cpuOf(args: readonly string[]): number {
  const before = childSeconds()
  for (let i = 0; i < RUNS; i++) run(args)
  return ((childSeconds() - before) * 1000) / RUNS
}

function run(args: readonly string[]): void {
  const { status, stderr } = spawnSync(process.execPath, args, { stdio: ['ignore', 'ignore', 'pipe'] })
  if (status !== 0) throw new Error(`${args.join(' ')} ended with ${status}: ${stderr}`)
}

/** CPU of the children that this process has waited for, user and system (proc(5), cutime and cstime). */
function childSeconds(): number {
  const fields = readFileSync('/proc/self/stat', 'utf8').split(') ')[1]?.split(' ') ?? []
  return (Number(fields[13]) + Number(fields[14])) / 100
}
