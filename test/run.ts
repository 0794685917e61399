// `node test/run.ts SUITE|FILE...` runs suites of tests, one after the other, each to its end whatever became of those before it.
// Then: how long each took, its slowest files, what was skipped and why, what has failed, and as the last line how many tests passed and failed.

import { spawnSync } from 'node:child_process'
import { globSync, readFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import process from 'node:process'
import { run } from 'node:test'
import { spec } from 'node:test/reporters'
import { bundleProgram } from './harness/bundled-program.ts'
import { COMMANDS, type NodeSuite, SUITES, suiteOf } from './suites.ts'

const ROOT = join(import.meta.dirname, '..')
/** Ends the title of a test that takes too long for every change: `npm run test:long` runs it, `npm test` does not. */
const LONG = /\(long\)$/
const IN_SOURCE = /\(long\)'/
const SLOWEST = 3
/** How much is shown of a failure's message in the last lines. */
const REASON_CHARACTERS = 300
/** For a suite that does not say how long it may take. */
const DEFAULT_MINUTES = 60
/** Every file is a process, and many start gateways and commands: a third of what they all cost would be compiling the same code. */
const COMPILE_CACHE = join(ROOT, 'node_modules/.cache/portcullis-compile')
/** What `prepare` has made is used where this is loaded first. */
const PRELOADED = ['--import', './test/harness/program.ts']

interface Result {
  readonly name: string
  readonly seconds: number
  readonly passed: number
  /** One line for each. */
  readonly failures: readonly string[]
  readonly skipped: readonly Skipped[]
  readonly slowest: readonly string[]
}

interface Skipped {
  readonly file: string
  readonly title: string
  readonly reason: string
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
      name: 'prepare',
      seconds: 0,
      passed: 0,
      failures: [`prepare: ${why.replaceAll('\n', ' ')}`],
      skipped: [],
      slowest: [],
    })
    return {}
  }
}

async function runSuite(name: string): Promise<Result> {
  out(`\n── ${name}`)
  const started = performance.now()
  const suite = suiteOf(name)
  const result = suite === undefined ? runCommand(name, COMMANDS[name] ?? []) : await runFiles(name, suite)
  return { name, seconds: (performance.now() - started) / 1000, ...result }
}

/** Counts as one test. */
function runCommand(name: string, [program = '', ...args]: readonly string[]): Omit<Result, 'name' | 'seconds'> {
  const { status, error } = spawnSync(program, args, { stdio: 'inherit' })
  const isGood = status === 0
  if (error !== undefined) out(error.message)
  return {
    passed: isGood ? 1 : 0,
    failures: isGood ? [] : [`${name}: ${[program, ...args].join(' ')}`],
    skipped: [],
    slowest: [],
  }
}

async function runFiles(name: string, suite: NodeSuite): Promise<Omit<Result, 'name' | 'seconds'>> {
  const found = globSync([...suite.files]).sort()
  // Hooks of a file run even when none of its tests does.
  const chosen = suite.titles === 'long' ? found.filter((file) => IN_SOURCE.test(readFileSync(file, 'utf8'))) : found
  const files = longestEarly(chosen, suite.longest ?? [])
  const failures: string[] = []
  const times: { readonly file: string; readonly seconds: number }[] = []
  const skipped: Skipped[] = []
  let passed = 0
  const stream = run({
    files,
    concurrency: suite.concurrency,
    timeout: suite.testMinutes * 60_000,
    // A file may never end though its tests have: a timer that was left, a server.
    signal: AbortSignal.timeout((suite.minutes ?? DEFAULT_MINUTES) * 60_000),
    execArgv: [...PRELOADED, ...(suite.nodeFlags ?? [])],
    env: { NODE_COMPILE_CACHE: COMPILE_CACHE, ...process.env, ...prepared, ...suite.env },
    ...(suite.titles === 'long' && { testNamePatterns: LONG }),
    ...(suite.titles === 'short' && { testSkipPatterns: LONG }),
  })
  stream.on('test:fail', ({ name: title, file = '', line = 0, details: { error } }) => {
    // What holds a test that failed fails, too.
    if ('failureType' in error && error.failureType === 'subtestsFailed') return
    failures.push(`${relative(ROOT, file)}:${line}: ${title}${reasonOf(error)}`)
  })
  stream.on('test:pass', ({ name: title, file = '', skip }) => {
    if (skip === undefined || skip === false) return
    skipped.push({
      file: relative(ROOT, file),
      title,
      reason: typeof skip === 'string' && skip !== '' ? skip : 'no reason given',
    })
  })
  stream.on('test:summary', ({ file, counts, duration_ms, success }) => {
    if (file !== undefined) times.push({ file: relative(ROOT, file), seconds: duration_ms / 1000 })
    else {
      passed = counts.passed
      if (!success && failures.length === 0) failures.push(`${name}: failed as a whole`)
    }
  })
  for await (const text of stream.compose(new spec())) process.stdout.write(text)
  times.sort((a, b) => b.seconds - a.seconds)
  return {
    passed,
    failures,
    skipped,
    slowest: times.slice(0, SLOWEST).map((time) => `${time.file} ${time.seconds.toFixed(0)} s`),
  }
}

/** What it failed with, in one line, for those who see only the end of the log. */
function reasonOf({ cause }: Error): string {
  const text = cause instanceof Error ? cause.message : typeof cause === 'string' ? cause : ''
  return text === '' ? '' : `: ${text.replaceAll(/\s+/g, ' ').slice(0, REASON_CHARACTERS)}`
}

/** The longest one by one among the first half of the others. @throws when one of them is not there */
function longestEarly(files: readonly string[], longest: readonly string[]): string[] {
  const missing = longest.filter((file) => !files.includes(file))
  if (missing.length > 0) throw new Error(`there is no ${missing.join(', ')}`)
  const ordered = files.filter((file) => !longest.includes(file))
  const step = Math.floor(ordered.length / (2 * longest.length))
  for (const [i, file] of longest.entries()) ordered.splice(i * (step + 1), 0, file)
  return ordered
}

function report(all: readonly Result[]): void {
  out('')
  for (const { name, seconds, passed, failures, slowest } of all) {
    const counts = `${String(passed).padStart(5)} passed ${String(failures.length).padStart(3)} failed`
    out(`${name.padEnd(12)} ${seconds.toFixed(0).padStart(5)} s ${counts}  ${slowest.join(', ')}`)
  }
  const skipped = all.flatMap((result) => result.skipped)
  if (skipped.length > 0) out(`\nskipped, ${skipped.length} of them:\n${reasons(skipped).join('\n')}`)
  const failures = all.flatMap((result) => result.failures)
  if (failures.length > 0) out(`\nfailed:\n${failures.map((line) => `  ${line}`).join('\n')}`)
  const total = all.reduce((sum, { passed }) => sum + passed, 0)
  out(`\n${total} passed, ${failures.length} failed`)
}

/** One line for each reason in each file: with the test's title if it is only one. */
function reasons(skipped: readonly Skipped[]): string[] {
  const groups = Map.groupBy(skipped, ({ file, reason }) => `${reason.replaceAll(/\s+/g, ' ').trim()}: ${file}`)
  return [...groups]
    .map(([where, tests]) => `  ${where}${tests.length === 1 ? `: ${tests[0]?.title}` : ` (${tests.length} tests)`}`)
    .sort((a, b) => (a < b ? -1 : 1))
}
