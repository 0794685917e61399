// `node test/run.ts SUITE|FILE...` runs suites of tests, one after the other, each to its end whatever became of those before it.
// Then: how long each took, its slowest files, what was skipped and why, what passed only when it ran again, what has failed, and as the last line
// how many tests passed and failed.

import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import process from 'node:process'
import { bundleProgram } from './harness/bundled-program.ts'
import { type Failure, type FilesResult, runSuiteFiles, type Skipped } from './harness/suite-files.ts'
import { COMMANDS, SUITES, suiteOf } from './suites.ts'

const ROOT = join(import.meta.dirname, '..')
/** Every file is a process, and many start gateways and commands: a third of what they all cost would be compiling the same code. */
const COMPILE_CACHE = join(ROOT, 'node_modules/.cache/portcullis-compile')
/** Programs in Go (a kube-apiserver, kubectl) collect their garbage later: they cost a tenth less, and their memory is small. */
const GO_COLLECTS_LATE = { GOGC: '400' }
const NOTHING_RUN: FilesResult = { passed: 0, failures: [], onlyAgain: [], skipped: [], slowest: [] }

interface Result extends FilesResult {
  readonly name: string
  readonly seconds: number
}

const out = (line: string): void => void process.stdout.write(`${line}\n`)

const [first = '', ...others] = process.argv.slice(2)
/** `--subject protection`: the tests of src/protection. */
const names = first === '--subject' ? others.map((name) => `src/${name}`) : process.argv.slice(2)
process.chdir(ROOT)
const unknown = names.filter((name) => suiteOf(name) === undefined && COMMANDS[name] === undefined)
if (names.length === 0 || unknown.length > 0) {
  const known = [...Object.keys(SUITES), ...Object.keys(COMMANDS)].join(' ')
  out(`usage: node test/run.ts SUITE|FILE|src/SUBJECT...; suites: ${known}`)
  process.exit(2)
}
const results: Result[] = []
const prepared = names.some((name) => suiteOf(name) !== undefined) ? await prepare() : {}
for (const name of names) results.push(await runSuite(name))
report(results)
process.exitCode = results.some(({ failures }) => failures.length > 0) ? 1 : 0

/** Variables for test files. Without them they start the sources, and make their keys. */
async function prepare(): Promise<Readonly<Record<string, string>>> {
  try {
    return await bundleProgram()
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error)
    results.push({
      ...NOTHING_RUN,
      name: 'prepare',
      seconds: 0,
      failures: [{ file: '', title: 'prepare', text: `prepare: ${why.replaceAll('\n', ' ')}` }],
    })
    return {}
  }
}

async function runSuite(name: string): Promise<Result> {
  out(`\n── ${name}`)
  const started = performance.now()
  const suite = suiteOf(name)
  const env = { NODE_COMPILE_CACHE: COMPILE_CACHE, ...GO_COLLECTS_LATE, ...process.env, ...prepared }
  // Who names a file wants to see it fail.
  const how = { env, runsAgain: SUITES[name] !== undefined }
  const result = suite === undefined ? runCommand(name, COMMANDS[name] ?? []) : await runSuiteFiles(name, suite, how)
  return { name, seconds: (performance.now() - started) / 1000, ...result }
}

/** Counts as one test. */
function runCommand(name: string, [program = '', ...args]: readonly string[]): FilesResult {
  const { status, error } = spawnSync(program, args, { stdio: 'inherit' })
  const isGood = status === 0
  if (error !== undefined) out(error.message)
  if (isGood) return { ...NOTHING_RUN, passed: 1 }
  return { ...NOTHING_RUN, failures: [{ file: '', title: name, text: `${name}: ${[program, ...args].join(' ')}` }] }
}

function report(all: readonly Result[]): void {
  out('')
  for (const { name, seconds, passed, failures, slowest } of all) {
    const counts = `${String(passed).padStart(5)} passed ${String(failures.length).padStart(3)} failed`
    out(`${name.padEnd(12)} ${seconds.toFixed(0).padStart(5)} s ${counts}  ${slowest.join(', ')}`)
  }
  const skipped = all.flatMap((result) => result.skipped)
  if (skipped.length > 0) out(`\nskipped, ${skipped.length} of them:\n${reasons(skipped).join('\n')}`)
  const onlyAgain = all.flatMap((result) => result.onlyAgain)
  if (onlyAgain.length > 0) out(`\nfailed, and passed when they ran again, alone:\n${lines(onlyAgain)}`)
  const failures = all.flatMap((result) => result.failures)
  if (failures.length > 0) out(`\nfailed:\n${lines(failures)}`)
  const total = all.reduce((sum, { passed }) => sum + passed, 0)
  out(`\n${total} passed, ${failures.length} failed`)
}

function lines(failures: readonly Failure[]): string {
  return failures.map(({ text }) => `  ${text}`).join('\n')
}

/** One line for each reason in each file: with the test's title if it is only one. */
function reasons(skipped: readonly Skipped[]): string[] {
  const groups = Map.groupBy(skipped, ({ file, reason }) => `${reason.replaceAll(/\s+/g, ' ').trim()}: ${file}`)
  return [...groups]
    .map(([where, tests]) => `  ${where}${tests.length === 1 ? `: ${tests[0]?.title}` : ` (${tests.length} tests)`}`)
    .sort((a, b) => (a < b ? -1 : 1))
}
