// The suites of tests: which files, with how many at once, and how many threads their gateways have.

import { existsSync } from 'node:fs'
import { availableParallelism } from 'node:os'

export interface NodeSuite {
  /** Globs, from the root of the repository. */
  readonly files: readonly string[]
  /**
   * The files that take longest: they begin one by one among the first half of the others, so that the suite does not wait for them in the end. Those that
   * wait stand beside those that compute.
   */
  readonly longest?: readonly string[]
  /** Files at once, each a process. */
  readonly concurrency: number
  /**
   * After so many a test or a hook fails; one that may take longer says so itself (`timeout`). A limit for what hangs and not a measure: most take
   * less than a second, and on a machine that is ten times busier than it can be all take longer.
   */
  readonly testMinutes: number
  /** After so many a file is killed, and fails: its tests may have ended, and something keeps it from exiting. Default: half of `minutes`. */
  readonly fileMinutes?: number
  /** After so many the suite is broken off. Default: an hour. */
  readonly minutes?: number
  /** short: without tests whose title ends in "(long)"; long: only those, and only files that have some. Default: all. */
  readonly titles?: 'short' | 'long'
  readonly env?: Readonly<Record<string, string>>
  readonly nodeFlags?: readonly string[]
}

const ONE_THREAD = { PORTCULLIS_TEST_THREADS: '1' }
const TWO_THREADS = { PORTCULLIS_TEST_THREADS: '2' }
/** Most of their time they wait, for sockets and timers. */
const AT_ONCE = Math.min(3 * availableParallelism(), 8)
/** A file of test/long may be told to run for an hour (FEDERATION_MINUTES) and takes some minutes more. */
const ONE_FILE_MINUTES = 240
const TEST_MINUTES = 2
/** A cluster takes up to a minute to start on a busy machine, and what its controllers do comes after that. */
const REAL_TEST_MINUTES = 5
/** On real clusters, each file with its own: a file waits for more than half of its time. */
const REAL = {
  concurrency: Math.min(3 * availableParallelism(), 6),
  testMinutes: REAL_TEST_MINUTES,
  titles: 'short',
} as const

const UNIT = {
  files: ['src/**/*.test.ts', 'test/!(e2e|long)/*.test.ts'],
  longest: [
    'test/storms/storms.test.ts',
    'test/http/early-answers.test.ts',
    'test/admission/global-limits.test.ts',
    'test/servers/moving-addresses.test.ts',
    'test/admission/explain-agrees.test.ts',
    'test/listener/serving-reload.test.ts',
    'test/listener/failures.test.ts',
    'test/requests/large-objects.test.ts',
    'test/requests/large-list.test.ts',
    'test/process/demo.test.ts',
    'test/upgrades/rolling-update.test.ts',
    'test/upstream/endpoints.test.ts',
    'test/memory/under-attack.test.ts',
    'test/upgrades/inherited-sockets.test.ts',
    'test/repository/site.test.ts',
    'test/repository/leave-out.test.ts',
    'test/prometheus/live.test.ts',
    'test/process/lifecycle.test.ts',
  ],
  concurrency: AT_ONCE,
  testMinutes: TEST_MINUTES,
  titles: 'short',
  nodeFlags: ['--import', './test/harness/property-seed.ts'],
} as const satisfies NodeSuite

export const SUITES: Readonly<Record<string, NodeSuite>> = {
  unit: UNIT,
  /** All of the following, with two threads. */
  e2e: {
    ...REAL,
    files: ['test/e2e/**/*.test.ts'],
    longest: [
      'test/e2e/kubectl-parity.test.ts',
      'test/e2e/upgrades.test.ts',
      'test/e2e/login.test.ts',
      'test/e2e/vip-services.test.ts',
      'test/e2e/threads/apiserver-loss.test.ts',
      'test/e2e/threads/embedded-gateway.test.ts',
    ],
    env: TWO_THREADS,
  },
  control: { ...REAL, files: ['test/e2e/control/*.test.ts'], env: TWO_THREADS },
  protection: { ...REAL, files: ['test/e2e/protection/*.test.ts'], env: TWO_THREADS },
  scale: { ...REAL, files: ['test/e2e/scale/*.test.ts'], env: TWO_THREADS },
  docs: { ...REAL, files: ['test/e2e/docs/*.test.ts'], env: TWO_THREADS },
  two: { ...REAL, files: ['test/e2e/*.test.ts', 'test/e2e/threads/*.test.ts'], env: TWO_THREADS },
  /** What every thread has a part in: limits, health of endpoints, changes of the configuration, revocation, metrics. */
  one: { ...REAL, files: ['test/e2e/threads/*.test.ts'], env: ONE_THREAD },
  long: {
    ...REAL,
    concurrency: 2,
    files: ['test/!(long)/**/*.test.ts'],
    testMinutes: 15,
    titles: 'long',
    env: TWO_THREADS,
  },
  'long:files': {
    concurrency: 1,
    testMinutes: 60,
    minutes: 240,
    files: ['test/long/*.test.ts'],
    env: TWO_THREADS,
  },
  /** With `one`, every file with every number of threads. */
  'long:one': { ...REAL, concurrency: 2, files: ['test/e2e/*.test.ts'], env: ONE_THREAD },
}

/** Folders of test/ that `npm run test:subject` runs beside the tests in the subject's own folder. Its README names them. */
export const FOLDERS: Readonly<Record<string, readonly string[]>> = {
  admin: ['admin', 'prometheus'],
  apiserver: ['control'],
  audit: ['audit'],
  cli: ['replay'],
  // Without storms, a quarter of its time: one file that is run by its name.
  gateway: [
    ...['admission', 'identity', 'list-guard', 'listener', 'objects', 'requests', 'servers', 'turns', 'upstream'],
  ],
  http2: ['http', 'conformance'],
  grants: ['access'],
  incidents: ['degrade'],
  insight: ['dashboard', 'tap', 'top'],
  kit: ['shares', 'stalls'],
  login: ['login'],
  process: ['chart'],
  program: ['process', 'upgrades'],
  protection: ['protection'],
  scaling: ['scale'],
  'scale-up-guard': ['scale'],
  cache: ['cache'],
  federation: ['federation'],
  sessions: ['sessions'],
  traces: ['traces'],
}

/** The tests of a subject that need no real cluster. @param name of a folder in src/ */
function subjectSuite(name: string): NodeSuite {
  const files = [`src/${name}/**/*.test.ts`, ...(FOLDERS[name] ?? []).map((folder) => `test/${folder}/*.test.ts`)]
  const { concurrency, testMinutes, titles, nodeFlags } = UNIT
  const folders = (FOLDERS[name] ?? []).map((folder) => `test/${folder}/`)
  const longest = UNIT.longest.filter((file) => folders.some((folder) => file.startsWith(folder)))
  return { files, longest, concurrency, testMinutes, titles, nodeFlags }
}

/** A file is a suite of its own, as it is run by `npm test`; so are the tests of a subject, `src/NAME`. */
export function suiteOf(name: string): NodeSuite | undefined {
  const [, subject] = /^src\/([\w-]+)\/?$/.exec(name) ?? []
  if (subject !== undefined) return existsSync(name) ? subjectSuite(subject) : undefined
  if (!name.includes('.test.')) return SUITES[name]
  const testMinutes = /(^|\/)test\/(e2e|long)\//.test(name) ? REAL_TEST_MINUTES : TEST_MINUTES
  return { files: [name], concurrency: 1, testMinutes, minutes: ONE_FILE_MINUTES, titles: 'short' }
}

/** Programs that judge themselves. */
export const COMMANDS: Readonly<Record<string, readonly string[]>> = {
  check: ['npm', 'run', '-s', 'check'],
  /** What a request costs, against the last commit that was accepted. */
  speed: ['node', 'bench/gate.ts'],
  crash: ['node', 'test/crash/run.ts', '--rounds', '200'],
  soak: ['node', 'test/soak/run.ts', '--minutes', '3'],
}
