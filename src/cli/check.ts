// `portcullis check`: reports every error in a directory of UpstreamCluster files, with file, line, path and fix.

import type { SourceError } from '../gateway/api/resource-source.ts'
import { loadDirectory } from '../gateway/io/sources/files/source.ts'
import { UserError } from '../kit/api/validation/field-errors.ts'
import { nodePemChecks } from '../pki/io/pem-checks.ts'

export interface CheckOptions {
  readonly dir: string
  readonly output: 'text' | 'json'
  /** Whether to resolve references to files and Secrets. Default true. */
  readonly secrets?: boolean
  out(text: string): void
}

/** @returns the exit code: 1 if there is an error; warnings alone are fine */
export async function check({ dir, output, secrets = true, out }: CheckOptions): Promise<number> {
  const { names, problems } = await load(dir, secrets)
  const valid = !problems.some((problem) => problem.severity === 'error')
  if (output === 'json') out(`${JSON.stringify({ valid, problems }, undefined, 2)}\n`)
  else out(`${problems.map(describe).join('')}${summary(valid, names, problems)}\n`)
  return valid ? 0 : 1
}

/** Fields of an error in `--output json`, in the documented order. */
type Listed = Pick<SourceError, 'file' | 'line' | 'path' | 'message' | 'fix' | 'severity'>

/** A problem of the directory itself names the directory. */
async function load(dir: string, secrets: boolean): Promise<{ names: readonly string[]; problems: readonly Listed[] }> {
  try {
    // Manifests without their keys are meant for an API server.
    const { clusters, problems } = await loadDirectory(dir, nodePemChecks, { recovery: !secrets }, secrets)
    const listed = problems.map(({ file, line, path, message, fix, severity }) => {
      return { file: file === '' ? dir : file, line, path, message, fix, severity }
    })
    return { names: [...clusters.keys()], problems: listed }
  } catch (error) {
    if (!(error instanceof UserError)) throw error
    const { message, fix } = error
    return { names: [], problems: [{ file: dir, line: 0, path: '', message, fix, severity: 'error' }] }
  }
}

function describe({ file, line, path, message, fix, severity }: Listed): string {
  const place = line > 0 ? `${file}:${line}` : file
  const where = path === '' ? place : `${place}: ${path}`
  return `${where}: ${severity === 'warning' ? 'warning: ' : ''}${message}\n  fix: ${fix}\n`
}

function summary(valid: boolean, names: readonly string[], problems: readonly Listed[]): string {
  const errors = problems.filter((problem) => problem.severity === 'error').length
  const counts = `${count(errors, 'error')}, ${count(problems.length - errors, 'warning')}`
  const good = names.length === 0 ? 'no UpstreamCluster' : `UpstreamCluster ${names.join(', ')}`
  return valid ? `valid: ${good} (${counts})` : `not valid: ${counts}`
}

function count(number: number, what: string): string {
  return `${number} ${what}${number === 1 ? '' : 's'}`
}
