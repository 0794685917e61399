// Node for other platforms from npm's registry: the binaries of nodejs.org, in a package for each platform, by the maintainers of the package `node`.

import { spawnSync } from 'node:child_process'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import process from 'node:process'
import type { Platform } from './executable.ts'

/**
 * The file of the Node that runs this script, for another platform. npm compares the package with the checksum in its registry.
 * @param dir for the package
 * @throws {Error} with what to do if there is none
 */
export function downloadNode({ name, os, nodePackage }: Platform, dir: string): string {
  const version = process.versions.node
  const folder = join(dir, name)
  mkdirSync(folder)
  try {
    run('npm', ['pack', '--loglevel=error', `--pack-destination=${folder}`, `${nodePackage}@${version}`])
    run('tar', ['-xzf', join(folder, `${nodePackage}-${version}.tgz`), '-C', folder])
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error)
    throw new Error(`${nodePackage}@${version} cannot be had from npm (${why}); give its node by --node ${name}=FILE`)
  }
  return join(folder, 'package/bin', os === 'windows' ? 'node.exe' : 'node')
}

/** @throws {Error} with the first line that it says */
function run(program: string, args: readonly string[]): void {
  const { status, stderr, error } = spawnSync(program, args, { encoding: 'utf8' })
  // npm begins with a code, and says the reason below it.
  const reason = stderr?.split('\n').find((line) => line.trim() !== '' && !line.startsWith('npm error code'))
  if (status !== 0) throw new Error(error?.message ?? reason ?? program)
}
