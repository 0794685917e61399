// Runs the files of a suite of tests, and up to eight that fail once more, alone (docs/decisions/0086-a-second-run.md).

import { globSync } from 'node:fs'
import { join, relative } from 'node:path'
import process from 'node:process'
import { run } from 'node:test'
import { spec } from 'node:test/reporters'
import type { NodeSuite } from '../suites.ts'
import { HungFiles } from './hung-files.ts'
import { hasLongTests } from './long-tests.ts'

export interface FilesResult {
  readonly passed: number
  readonly failures: readonly Failure[]
  /** What has failed beside other files, and passed alone. */
  readonly onlyAgain: readonly Failure[]
  readonly skipped: readonly Skipped[]
  readonly slowest: readonly string[]
}

export interface Failure {
  /** '' = the suite as a whole. */
  readonly file: string
  /** That of the test; of a file as a whole, the file. */
  readonly title: string
  /** One line. */
  readonly text: string
}

export interface Skipped {
  readonly file: string
  readonly title: string
  readonly reason: string
}

interface SuiteRun {
  /** Whether files that fail may run again. */
  readonly runsAgain: boolean
  /** For the files, beside what the suite says. */
  readonly env: NodeJS.ProcessEnv
}

interface OneRun extends Omit<FilesResult, 'onlyAgain'> {
  /** By `testKey`; of a file as a whole, if it has not failed and one of its tests has passed. */
  readonly passedTests: ReadonlySet<string>
  /** It took longer than it may: others may not have begun. */
  readonly isBrokenOff: boolean
}

const ROOT = join(import.meta.dirname, '../..')
/** Ends the title of a test that takes too long for every change: `npm run test:long` runs it, `npm test` does not. */
const LONG = /\(long\)$/
const SLOWEST = 3
/** More files are no accident: nothing runs again. */
const MOST_AGAIN = 8
/** How much is shown of a failure's message in the last lines. */
const REASON_CHARACTERS = 300
/** For a suite that does not say how long it may take. */
const DEFAULT_MINUTES = 60
/** What has been prepared for tests is used where this is loaded first. */
const PRELOADED = ['--import', './test/harness/program.ts']

export async function runSuiteFiles(name: string, suite: NodeSuite, how: SuiteRun): Promise<FilesResult> {
  const found = globSync([...suite.files]).sort()
  // Hooks of a file run even when none of its tests does.
  const chosen = suite.titles === 'long' ? found.filter(hasLongTests) : found
  const files = longestEarly(chosen, suite.longest ?? [])
  const { passedTests: _, isBrokenOff, ...first } = await runFiles(name, suite, files, how.env)
  const failed = [...new Set(first.failures.map(({ file }) => file))]
  // Tests that a module makes for several files are of that module.
  const isAccident = failed.length <= MOST_AGAIN && !isBrokenOff && failed.every((file) => files.includes(file))
  if (!how.runsAgain || !isAccident || failed.length === 0) return { ...first, onlyAgain: [] }
  process.stdout.write(`\n── ${name}, again: ${failed.join(' ')}\n`)
  const second = await runFiles(name, { ...suite, concurrency: 1 }, failed, how.env)
  const failedAgain = new Set(second.failures.map(testKey))
  // One that is skipped now, or not there, has not passed.
  const onlyAgain = first.failures.filter(
    (one) => second.passedTests.has(testKey(one)) && !failedAgain.has(testKey(one)),
  )
  const notRun = first.failures.filter((one) => !onlyAgain.includes(one) && !failedAgain.has(testKey(one)))
  const failures = [...second.failures, ...notRun]
  return { ...first, passed: first.passed + onlyAgain.length, failures, onlyAgain }
}

async function runFiles(
  name: string,
  suite: NodeSuite,
  files: readonly string[],
  env: NodeJS.ProcessEnv,
): Promise<OneRun> {
  const failures: Failure[] = []
  const times: { readonly file: string; readonly seconds: number }[] = []
  const skipped: Skipped[] = []
  const passedTests = new Set<string>()
  let passed = 0
  const minutes = suite.minutes ?? DEFAULT_MINUTES
  const signal = AbortSignal.timeout(minutes * 60_000)
  using _hung = new HungFiles(suite.fileMinutes ?? minutes / 2)
  const stream = run({
    files: [...files],
    concurrency: suite.concurrency,
    timeout: suite.testMinutes * 60_000,
    signal,
    execArgv: [...PRELOADED, ...(suite.nodeFlags ?? [])],
    env: { ...env, ...suite.env },
    ...(suite.titles === 'long' && { testNamePatterns: LONG }),
    ...(suite.titles === 'short' && { testSkipPatterns: LONG }),
  })
  stream.on('test:fail', ({ name: test, file = '', line = 0, details: { error } }) => {
    // What holds a test that failed fails, too.
    if ('failureType' in error && error.failureType === 'subtestsFailed') return
    const path = relative(ROOT, file)
    const title = relative(ROOT, test) === path ? path : test
    failures.push({ file: path, title, text: `${path}:${line}: ${test}${reasonOf(error)}` })
  })
  stream.on('test:pass', ({ name: title, file = '', skip }) => {
    const path = relative(ROOT, file)
    if (skip === undefined || skip === false) passedTests.add(testKey({ file: path, title }))
    else skipped.push({ file: path, title, reason: typeof skip === 'string' && skip !== '' ? skip : 'no reason given' })
  })
  stream.on('test:summary', ({ file, counts, duration_ms, success }) => {
    if (file !== undefined) {
      const path = relative(ROOT, file)
      times.push({ file: path, seconds: duration_ms / 1000 })
      if (success && counts.passed > 0) passedTests.add(testKey({ file: path, title: path }))
      return
    }
    passed = counts.passed
    if (!success && failures.length === 0) failures.push({ file: '', title: name, text: `${name}: failed as a whole` })
  })
  for await (const text of stream.compose(new spec())) process.stdout.write(text)
  times.sort((a, b) => b.seconds - a.seconds)
  return {
    passed,
    failures,
    skipped,
    slowest: times.slice(0, SLOWEST).map((time) => `${time.file} ${time.seconds.toFixed(0)} s`),
    passedTests,
    isBrokenOff: signal.aborted,
  }
}

function testKey({ file, title }: Pick<Failure, 'file' | 'title'>): string {
  return `${file}\n${title}`
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
