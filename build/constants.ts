// What a build knows of its sources: version, commit and date.

import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import process from 'node:process'
import type { BuildConstants } from '../src/kit/io/program/build.ts'

const ROOT = resolve(import.meta.dirname, '..')

export function buildConstants(): BuildConstants {
  const manifest: unknown = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))
  const version = typeof manifest === 'object' && manifest !== null ? String(Reflect.get(manifest, 'version')) : ''
  // An image is built without .git; the builder says what it is built from.
  const { PORTCULLIS_COMMIT: given = '', PORTCULLIS_COMMIT_DATE: givenDate = '' } = process.env
  if (given !== '') return { version, commit: given, modified: false, date: givenDate }
  const commit = git('rev-parse', 'HEAD')
  if (commit === '') return { version, commit, modified: false, date: '' }
  const date = git('show', '--no-patch', '--format=%ct', 'HEAD')
  return {
    version,
    commit,
    modified: git('status', '--porcelain') !== '',
    // Not the time of the build: the same sources give the same files.
    date: new Date(Number(date) * 1000).toISOString().replace('.000', ''),
  }
}

/** '' where there is no git, or no checkout. */
function git(...args: readonly string[]): string {
  const { status, stdout } = spawnSync('git', args, { cwd: ROOT, encoding: 'utf8' })
  return status === 0 ? stdout.trim() : ''
}
