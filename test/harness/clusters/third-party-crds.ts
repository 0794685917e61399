// CustomResourceDefinitions of other projects, from their Go modules: downloaded once, into the cache folder of the test programs.

import { spawnSync } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, renameSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { cacheFolder } from '../binaries.ts'

interface CrdModule {
  readonly module: string
  readonly version: string
  /** As in a go.sum: what was downloaded is what was meant. */
  readonly sum: string
  /** The folder of the CRDs in the module. */
  readonly folder: string
}

export type CrdProject = 'cluster-api' | 'cert-manager' | 'prometheus-operator'

export const CRD_MODULES: Readonly<Record<CrdProject, CrdModule>> = {
  'cluster-api': {
    module: 'sigs.k8s.io/cluster-api',
    version: 'v1.12.1',
    sum: 'h1:s3DivSZjXdu2HPyOtV/n6XwSZBaIycZdKNs4y8X+3lY=',
    folder: 'config/crd/bases',
  },
  'cert-manager': {
    module: 'github.com/cert-manager/cert-manager',
    version: 'v1.21.2',
    sum: 'h1:UWgoYM+KLNtRlqmoWOKjKBOBUPVHeepQ6/ac3ERJW68=',
    folder: 'deploy/crds',
  },
  'prometheus-operator': {
    module: 'github.com/prometheus-operator/prometheus-operator',
    version: 'v0.85.0',
    sum: 'h1:M5xLCLEoaW2IJfnuCwFzzpL+jSVQu3KGT84Pye+fW8s=',
    folder: 'example/prometheus-operator-crd',
  },
}
export const CRD_PROJECTS = Object.keys(CRD_MODULES) as CrdProject[]

/** Whether calls of `crdsOf` would only look. */
export function crdsAreThere(): boolean {
  return CRD_PROJECTS.every((project) => existsSync(cached(project)))
}

/** The folder with the CRDs of a project, as YAML files. @throws {Error} when it is missing and cannot be downloaded */
export function crdsOf(project: CrdProject): string {
  const target = cached(project)
  if (existsSync(target)) return target
  const source = join(download(CRD_MODULES[project]), CRD_MODULES[project].folder)
  // When several processes do this, the last one wins, with the same files.
  const unfinished = `${target}.${process.pid}`
  mkdirSync(cacheFolder(), { recursive: true })
  cpSync(source, unfinished, {
    recursive: true,
    filter: (path) => path === source || path.endsWith('.yaml'),
  })
  try {
    renameSync(unfinished, target)
  } catch (failure) {
    rmSync(unfinished, { recursive: true, force: true })
    if (!existsSync(target)) throw failure
  }
  return target
}

function cached(project: CrdProject): string {
  return join(cacheFolder(), `${project}-${CRD_MODULES[project].version}`)
}

/** @returns the folder of the module */
function download({ module, version, sum }: CrdModule): string {
  process.stderr.write(`downloading ${module} ${version} with Go, once\n`)
  // The sum is pinned here: no server has to be asked for it.
  const env = { ...process.env, GOWORK: 'off', GONOSUMDB: module }
  const { stdout, stderr, error } = spawnSync('go', ['mod', 'download', '-json', `${module}@${version}`], {
    cwd: tmpdir(),
    env,
    encoding: 'utf8',
  })
  const said: { Dir?: string; Sum?: string; Error?: string } = stdout === '' ? {} : JSON.parse(stdout)
  if (error !== undefined || said.Dir === undefined || said.Sum !== sum) {
    const why = error?.message ?? said.Error ?? (said.Sum === undefined ? stderr : `its sum is ${said.Sum}, not ${sum}`)
    throw new Error(`${module} ${version} cannot be downloaded: ${why}`)
  }
  return said.Dir
}
