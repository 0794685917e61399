// A subject of the list in src/program/subjects/subjects.ts can be left out: without its folder, its import, its row and the reference to its
// project, and those of subjects that import it, the program compiles, is bundled and serves, and has nothing of it. The demo shows all subjects, so it
// goes along with any of them, as does its row in src/main.ts.

import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { cpSync, existsSync, globSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import process from 'node:process'
import { test } from 'node:test'
import { METRICS } from '../../src/gateway/metrics/descriptors.ts'
import { GROUPS } from '../../src/program/subjects/settings.ts'
import { SUBJECTS } from '../../src/program/subjects/subjects.ts'
import { sourceFiles } from '../harness/docs/source-files.ts'
import { startGateway } from '../harness/gateways/gateway.ts'
import { clusterObject } from '../harness/objects/objects.ts'
import { PATIENT } from '../harness/patience.ts'
import { startStub } from '../harness/upstreams/stub-upstream.ts'

const ROOT = resolve(import.meta.dirname, '../..')
const LIST = 'src/program/subjects/subjects.ts'

interface LeftOut {
  readonly folder: string
  /** The registration. */
  readonly name: string
  readonly commands: readonly string[]
  /** Fields of UpstreamCluster that have no effect without it: a warning each. */
  readonly spec: Readonly<Record<string, unknown>>
  /** Settings that have no effect without it, and the line of the log that says so. Default: none. */
  readonly settings?: { readonly flags: readonly string[]; readonly warning: string }
  /** Paths of the admin listener that are not there without it. Default: none. */
  readonly paths?: readonly string[]
}

const LEFT_OUT: readonly LeftOut[] = [
  { folder: 'protection', name: 'POD_PROTECTION', commands: ['protect'], spec: { podProtection: {} } },
  { folder: 'scaling', name: 'SCALING', commands: ['scale'], spec: { scaleProtection: {} } },
  { folder: 'scale-up-guard', name: 'SCALE_UP_GUARD', commands: [], spec: {} },
  { folder: 'cache', name: 'CACHE', commands: [], spec: { cache: [] } },
  { folder: 'federation', name: 'FEDERATION', commands: [], spec: { federation: {} } },
  { folder: 'grants', name: 'GRANTS', commands: ['access'], spec: {} },
  { folder: 'sessions', name: 'SESSIONS', commands: ['play'], spec: { audit: { sessions: {} } } },
  {
    folder: 'incidents',
    name: 'INCIDENTS',
    commands: ['degrade'],
    spec: { degrade: { mode: 'NoDisruption', reason: 'an incident' } },
  },
  {
    folder: 'insight',
    name: 'INSIGHT',
    commands: ['top', 'sessions', 'tap'],
    spec: {},
    settings: { flags: ['--top-metrics', 'user'], warning: '--top-metrics has no effect' },
    paths: ['/', '/login', '/api/v1/top', '/api/v1/sessions', '/api/v1/tap', '/api/v1/overview', '/api/v1/explain'],
  },
  {
    folder: 'traces',
    name: 'TRACES',
    commands: [],
    spec: {},
    settings: { flags: ['--tracing-otlp-endpoint', 'http://127.0.0.1:4318'], warning: '--tracing-* has no effect' },
  },
]

test('the rows of these subjects stand at the end of the table of metrics, in the order of the list, whichever was loaded first', () => {
  const listed = SUBJECTS.flatMap(({ metrics }) => metrics?.metrics ?? [])
  assert.deepEqual(METRICS.slice(-listed.length), listed)
  const idsAfter = (module: string): unknown =>
    JSON.parse(
      run(
        ROOT,
        process.execPath,
        '--input-type=module',
        '-e',
        `await import('./src/${module}')
const { SUBJECTS } = await import('./src/program/subjects/subjects.ts')
console.log(JSON.stringify(SUBJECTS.flatMap(({ metrics }) => (metrics?.metrics ?? []).map(({ id }) => id))))`,
      ),
    )
  const ids = listed.map(({ id }) => id)
  assert.deepEqual(idsAfter('scaling/metrics/descriptors.ts'), ids)
  assert.deepEqual(idsAfter('scale-up-guard/metrics/descriptors.ts'), ids)
  assert.deepEqual(idsAfter('cache/metrics/descriptors.ts'), ids)
  assert.deepEqual(idsAfter('traces/metrics/descriptors.ts'), ids)
})

test('every subject of the list is left out here', () => {
  assert.equal(LEFT_OUT.length, SUBJECTS.length)
})

test('every group of settings that can be without effect is of a subject of the list', () => {
  const groups = SUBJECTS.flatMap(({ settings }) => settings ?? [])
  assert.deepEqual(groups.toSorted(), Object.keys(GROUPS).sort())
})

test('without any of them the program compiles, is bundled and serves', PATIENT, () => runsWithout(LEFT_OUT))

for (const subject of LEFT_OUT) {
  const gone = withDependants(subject)
  const folders = gone.map(({ folder }) => `src/${folder}`)
  test(`without ${folders.join(' and ')} it does, too (long)`, PATIENT, () => runsWithout(gone))
}

async function runsWithout(gone: readonly LeftOut[]): Promise<void> {
  const dir = copyWithout(gone)
  const commands = gone.flatMap((one) => one.commands)
  try {
    run(dir, join(ROOT, 'node_modules/.bin/tsc'), '-b')
    run(dir, process.execPath, 'build/build.ts')
    const main = join(dir, 'dist/main.mjs')
    const help = run(dir, process.execPath, main, '--help')
    assert.match(help, /^ {2}serve /m)
    for (const command of commands) assert.doesNotMatch(help, new RegExp(`^ {2}${command}\\b`, 'm'))
    await serve(main, gone)
  } finally {
    rmSync(dir, { recursive: true, force: true })
  }
}

/** They compare what all subjects have together with a file: the table of metrics, the manifest of the webhook, kinds and commands. */
const OF_ALL_SUBJECTS = [
  'src/gateway/metrics/descriptors.test.ts',
  'src/apiserver/cli/control.test.ts',
  'src/apiserver/webhooks/webhook.test.ts',
  'src/program/cli/program.test.ts',
]

for (const subject of LEFT_OUT.filter(({ folder }) => folder !== 'scale-up-guard')) {
  const gone = withDependants(subject)
  const folders = gone.map(({ folder }) => folder)
  test(`without src/${folders.join(' and src/')} the unit tests of all other subjects pass (long)`, PATIENT, () => {
    const dir = copyWithout(gone, true)
    const ofLeftOut = new RegExp(`'(?:\\.\\./)+(?:src/)?(?:${[...folders, 'demo'].join('|')})/`)
    try {
      const files = globSync('src/**/*.test.ts', { cwd: dir }).filter(
        (file) => !OF_ALL_SUBJECTS.includes(file) && !ofLeftOut.test(readFileSync(join(dir, file), 'utf8')),
      )
      assert.ok(files.length > 280, `${files.length} files of tests`)
      const printed = run(dir, process.execPath, '--test', '--test-concurrency=2', '--test-reporter=dot', ...files)
      assert.doesNotMatch(printed, /X/)
    } finally {
      rmSync(dir, { recursive: true, force: true })
    }
  })
}

/** A subject, and those of the list that import it, of which there is none without it. */
function withDependants(subject: LeftOut): readonly LeftOut[] {
  const imports = new Set(
    [...sourceFiles().values()].flatMap((file) =>
      file.imports.map(({ path }) => `${file.subject} ${path.split('/')[0] ?? ''}`),
    ),
  )
  const gone = [subject]
  for (const one of gone) {
    gone.push(...LEFT_OUT.filter((other) => !gone.includes(other) && imports.has(`${other.folder} ${one.folder}`)))
  }
  return gone
}

/**
 * The sources of the program without those of some subjects, of the demo and, by default, of tests; the list and the projects do not name the
 * subjects.
 */
function copyWithout(gone: readonly Pick<LeftOut, 'folder' | 'name'>[], withTests = false): string {
  const dir = mkdtempSync(join(tmpdir(), 'portcullis-leave-out-'))
  const absent = new Set([...gone.map(({ folder }) => join(ROOT, 'src', folder)), join(ROOT, 'src/demo')])
  const filter = (path: string): boolean => !absent.has(path) && (withTests || !/\.test\.tsx?$/.test(path))
  const tests = withTests ? ['test', 'deploy', 'docs', 'demo', 'README.md'] : []
  for (const part of ['src', 'build', 'config', 'package.json', 'package-lock.json', ...tests]) {
    if (existsSync(join(ROOT, part))) cpSync(join(ROOT, part), join(dir, part), { recursive: true, filter })
  }
  for (const { folder, name } of gone) {
    edit(join(dir, LIST), new RegExp(`^import \\{ ${name} \\} from .*\n`, 'm'))
    edit(join(dir, LIST), new RegExp(`^ {2}${name},.*\n`, 'm'))
    edit(join(dir, 'src/program/tsconfig.json'), new RegExp(`^ {4}\\{ "path": "\\.\\./${folder}" \\},?\n`, 'm'))
  }
  edit(join(dir, 'src/main.ts'), /^ {4}demo: .*\n/m)
  symlinkSync(join(ROOT, 'node_modules'), join(dir, 'node_modules'))
  cpSync(join(ROOT, 'tsconfig.json'), join(dir, 'tsconfig.all.json'))
  const references = globSync('src/*/tsconfig.json', { cwd: dir }).map((path) => ({ path: dirname(path) }))
  writeFileSync(
    join(dir, 'tsconfig.json'),
    JSON.stringify({ extends: './tsconfig.all.json', include: ['src/main.ts'], references }),
  )
  return dir
}

/** Removes what `pattern` finds: exactly one line. */
function edit(file: string, pattern: RegExp): void {
  const before = readFileSync(file, 'utf8')
  const after = before.replace(pattern, '')
  assert.equal(before.split('\n').length - after.split('\n').length, 1, `${pattern} in ${file}`)
  writeFileSync(file, after)
}

function run(dir: string, command: string, ...args: readonly string[]): string {
  const env = { ...process.env }
  for (const variable of ['NODE_TEST_CONTEXT', 'NODE_OPTIONS', 'NODE_V8_COVERAGE']) delete env[variable]
  const { status, stdout, stderr } = spawnSync(command, args, { cwd: dir, env, encoding: 'utf8' })
  assert.equal(status, 0, `${[command, ...args].join(' ')}\n${stdout}${stderr}`)
  return stdout
}

/** Starts a gateway of this program, with one cluster that has the fields of these subjects, and their settings; stops it once it is ready. */
async function serve(main: string, gone: readonly LeftOut[]): Promise<void> {
  const without = Object.assign({}, ...gone.map(({ spec }) => spec)) as object
  const settings = gone.flatMap((one) => one.settings ?? [])
  const stub = await startStub()
  try {
    const spec = { podProtection: {}, ...without }
    const gateway = await startGateway({
      clusters: [clusterObject([stub], { spec })],
      program: [process.execPath, main],
      args: settings.flatMap(({ flags }) => flags),
    })
    const metrics = await gateway.metrics()
    assert.equal((await gateway.admin('/healthz')).status, 200)
    for (const path of gone.flatMap(({ paths = [] }) => paths)) {
      const { status, text } = await gateway.admin(path)
      assert.equal(status, 404, `${path}: ${text}`)
    }
    for (const { warning } of settings) assert.ok(gateway.logs().includes(warning), warning)
    assert.equal(await gateway.stop(), 0)
    assert.match(metrics, /^portcullis_config_clusters 1$/m)
    assert.match(
      metrics,
      new RegExp(`^portcullis_config_problems{severity="warning"} ${Object.keys(without).length}$`, 'm'),
    )
  } finally {
    await stub.stop()
  }
}
