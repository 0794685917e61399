// The programs that the tests run, each built from its Go module (test/harness/go/) into a cache folder outside the
// checkout. The folder's name changes with everything that decides the result, so that a cached program is never stale.

import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { setTimeout as sleep } from 'node:timers/promises'
import { elapsedText, goBuild } from './go-build.ts'

/** Absolute paths. */
export type Binaries = Readonly<Record<BinaryName, string>>
export type BinaryName = keyof typeof PROGRAMS

/** Program -> the module in test/harness/go/ that pins it, its main package, and seconds of a build on two cores, in this order. */
const PROGRAMS = {
  etcd: { module: 'etcd', package: 'go.etcd.io/etcd/server/v3', seconds: 35 },
  'kube-apiserver': { module: 'kubernetes', package: 'k8s.io/kubernetes/cmd/kube-apiserver', seconds: 170 },
  'kube-controller-manager': {
    module: 'kubernetes',
    package: 'k8s.io/kubernetes/cmd/kube-controller-manager',
    seconds: 45,
  },
  'kube-scheduler': { module: 'kubernetes', package: 'k8s.io/kubernetes/cmd/kube-scheduler', seconds: 5 },
  kubectl: { module: 'kubernetes', package: 'k8s.io/kubernetes/cmd/kubectl', seconds: 20 },
  'kubelet-streaming': { module: 'kubernetes', package: './kubelet-streaming', seconds: 1 },
  kwok: { module: 'kwok', package: 'sigs.k8s.io/kwok/cmd/kwok', seconds: 50 },
  h2spec: { module: 'h2spec', package: 'github.com/summerwind/h2spec/cmd/h2spec', seconds: 5 },
  storm: { module: 'storm', package: './', seconds: 45 },
  informers: { module: 'informers', package: './', seconds: 45 },
  uploads: { module: 'uploads', package: './', seconds: 5 },
  helm: { module: 'helm', package: 'helm.sh/helm/v4/cmd/helm', seconds: 90 },
} as const

/** Only single tests need these, and build them. */
const RARE_PROGRAMS = {
  conformance: { module: 'conformance', package: './', seconds: 100 },
  versitygw: { module: 'versitygw', package: 'github.com/versity/versitygw/cmd/versitygw', seconds: 75 },
  krew: { module: 'krew', package: 'sigs.k8s.io/krew/cmd/krew', seconds: 20 },
  'validate-krew-manifest': { module: 'krew', package: 'sigs.k8s.io/krew/cmd/validate-krew-manifest', seconds: 1 },
  readers: { module: 'readers', package: './', seconds: 30 },
  k9s: { module: 'k9s', package: 'github.com/derailed/k9s', seconds: 240 },
} as const

type RareName = keyof typeof RARE_PROGRAMS
type AnyName = BinaryName | RareName

const ALL_PROGRAMS = { ...PROGRAMS, ...RARE_PROGRAMS }

const MODULES = join(import.meta.dirname, 'go')
const NAMES = Object.keys(PROGRAMS) as BinaryName[]
/** How often a process that waits for another one's build looks again. */
const LOCK_POLL_MS = 250

/**
 * Makes sure that every program exists and says where. The first call on a machine builds them, which takes minutes and
 * is announced on stderr, with progress; test processes that need them meanwhile wait for that one build.
 * Ends the process with one line and exit code 1 when a program is missing and Go is not installed.
 */
export function binaries(): Promise<Binaries> {
  ensured ??= ensure()
  return ensured
}

let ensured: Promise<Binaries> | undefined

async function ensure(): Promise<Binaries> {
  await build(NAMES)
  return Object.fromEntries(NAMES.map((name) => [name, binaryPath(name)])) as Binaries
}

/** As `binaries`, of a program that it does not build. */
export async function rareBinary(name: RareName): Promise<string> {
  await build([name])
  return binaryPath(name)
}

async function build(names: readonly AnyName[]): Promise<void> {
  if (missingOf(names).length === 0) return
  mkdirSync(cacheFolder(), { recursive: true })
  using _lock = await lockBuild(join(cacheFolder(), 'build.lock'))
  const missing = missingOf(names) // another process may have built them while this one waited
  if (missing.length > 0) await buildAll(missing)
}

function missingOf(names: readonly AnyName[]): AnyName[] {
  return names.filter((name) => !existsSync(binaryPath(name)))
}

/** The folder for the programs, and for what else is brought for tests. */
export function cacheFolder(): string {
  return join(process.env['XDG_CACHE_HOME'] || join(homedir(), '.cache'), 'portcullis-test')
}

function binaryPath(name: AnyName): string {
  return join(cacheFolder(), `${name}-${programKey(name)}`, name)
}

/** Hash of everything that decides what is built, but for Go's own version. */
function programKey(name: AnyName): string {
  const { module, package: mainPackage } = ALL_PROGRAMS[name]
  const folder = join(MODULES, module)
  const files = ['go.mod', 'go.sum']
  if (mainPackage.startsWith('./')) {
    const sources = readdirSync(join(folder, mainPackage)).sort(compareText)
    files.push(...sources.map((source) => join(mainPackage, source)))
  }
  const hash = createHash('sha256').update(`${process.platform} ${process.arch} ${linkerFlags(module)}\n`)
  for (const file of files) hash.update(`${file}\n`).update(readFileSync(join(folder, file)))
  return hash.digest('hex').slice(0, 12)
}

function compareText(a: string, b: string): number {
  return a < b ? -1 : 1
}

/** kube-apiserver calls itself v0.0.0-master+$Format:%H$ without its version, and `kubectl version` fails on that. */
function linkerFlags(module: string): string {
  const goMod = readFileSync(join(MODULES, module, 'go.mod'), 'utf8')
  const [, version, major, minor] = /k8s\.io\/kubernetes (v(\d+)\.(\d+)\.\d+)/.exec(goMod) ?? []
  if (version === undefined) return '-s -w'
  const variable = 'k8s.io/component-base/version'
  return `-s -w -X ${variable}.gitVersion=${version} -X ${variable}.gitMajor=${major} -X ${variable}.gitMinor=${minor}`
}

/** Whether a call of `binaries` would only look. */
export function binariesAreBuilt(): boolean {
  return NAMES.every((name) => existsSync(binaryPath(name)))
}

export const NO_GO =
  'Go is not installed: the tests build Kubernetes with it. Install Go 1.26 or newer (https://go.dev/dl/), then run this again'

export function hasGo(): boolean {
  return spawnSync('go', ['version']).error === undefined
}

async function buildAll(missing: readonly AnyName[]): Promise<void> {
  if (!hasGo()) fail(NO_GO)
  const minutes = Math.ceil(missing.reduce((all, name) => all + ALL_PROGRAMS[name].seconds, 0) / 60)
  const time = `about ${minutes === 1 ? 'a minute' : `${minutes} minutes`} on two cores, and what the downloads take`
  say(`building ${missing.join(', ')} with Go into ${cacheFolder()}, once: ${time}`)
  const begun = performance.now()
  for (const [at, name] of missing.entries()) {
    const { module, package: mainPackage } = ALL_PROGRAMS[name]
    const path = binaryPath(name)
    const label = `[${at + 1}/${missing.length}] ${name}`
    mkdirSync(join(path, '..'), { recursive: true })
    const unfinished = `${path}.${process.pid}`
    const args = ['-buildvcs=false', '-ldflags', linkerFlags(module), '-o', unfinished, mainPackage]
    const failure = await goBuild(args, join(MODULES, module), label, say)
    if (failure !== '') {
      rmSync(unfinished, { force: true })
      fail(`building ${name} failed: ${failure}`)
    }
    renameSync(unfinished, path)
  }
  say(`built in ${elapsedText(performance.now() - begun)}`)
}

function say(line: string): void {
  process.stderr.write(`${line}\n`)
}

function fail(line: string): never {
  process.stderr.write(`${line}\n`)
  process.exit(1)
}

/** A lock that its holder's death releases, whatever the death: SQLite's lock on a file is the kernel's. */
async function lockBuild(file: string): Promise<Disposable> {
  const database = new DatabaseSync(file)
  let announced = false
  for (;;) {
    try {
      database.exec('BEGIN EXCLUSIVE')
      return { [Symbol.dispose]: () => database.close() }
    } catch (error) {
      if (!(error instanceof Error && error.message.includes('database is locked'))) throw error
    }
    if (!announced) process.stderr.write('waiting for another process that builds the test programs\n')
    announced = true
    await sleep(LOCK_POLL_MS)
  }
}
