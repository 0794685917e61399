// The CustomResourceDefinitions of Cluster API, from its Go module: downloaded once, into the cache folder of the test programs.

import { spawnSync } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, renameSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { cacheFolder } from './binaries.ts'

const MODULE = 'sigs.k8s.io/cluster-api'
const VERSION = 'v1.12.1'
/** As in a go.sum: what was downloaded is what was meant. */
export const CLUSTER_API_SUM = 'h1:s3DivSZjXdu2HPyOtV/n6XwSZBaIycZdKNs4y8X+3lY='

const FOLDER = join(cacheFolder(), `cluster-api-${VERSION}`)

/** Whether a call of `clusterApiCrds` would only look. */
export function clusterApiIsThere(): boolean {
  return existsSync(FOLDER)
}

/** The folder with the CRDs, as YAML files. @throws {Error} when it is missing and cannot be downloaded */
export function clusterApiCrds(): string {
  if (clusterApiIsThere()) return FOLDER
  process.stderr.write(`downloading ${MODULE} ${VERSION} with Go, once\n`)
  // The sum is pinned here: nobody else has to be asked for it.
  const env = { ...process.env, GOWORK: 'off', GONOSUMDB: MODULE }
  const { stdout, stderr, error } = spawnSync('go', ['mod', 'download', '-json', `${MODULE}@${VERSION}`], {
    cwd: tmpdir(),
    env,
    encoding: 'utf8',
  })
  const said: { Dir?: string; Sum?: string; Error?: string } = stdout === '' ? {} : JSON.parse(stdout)
  if (error !== undefined || said.Dir === undefined || said.Sum !== CLUSTER_API_SUM) {
    const why =
      error?.message ??
      said.Error ??
      (said.Sum === undefined ? stderr : `its sum is ${said.Sum}, not ${CLUSTER_API_SUM}`)
    throw new Error(`${MODULE} ${VERSION} cannot be downloaded: ${why}`)
  }
  // Of several processes the last one wins, with the same files.
  const unfinished = `${FOLDER}.${process.pid}`
  mkdirSync(cacheFolder(), { recursive: true })
  cpSync(join(said.Dir, 'config/crd/bases'), unfinished, { recursive: true })
  try {
    renameSync(unfinished, FOLDER)
  } catch (failure) {
    rmSync(unfinished, { recursive: true, force: true })
    if (!clusterApiIsThere()) throw failure
  }
  return FOLDER
}
