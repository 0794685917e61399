// Pythons with packages, each in a virtual environment beside the other programs that tests run.

import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import process from 'node:process'
import { promisify } from 'node:util'
import { cacheFolder } from '../binaries.ts'

/** Environment -> what is in it, for messages. Its packages are pinned in NAME.txt. */
export const PYTHON_PACKAGES = {
  /** And h2: the standard library has no HTTP/2. */
  httpx: 'httpx and h2',
  /** The official client, without what only its asynchronous one needs. */
  kubernetes: 'the client of Kubernetes',
} as const

export type PythonPackages = keyof typeof PYTHON_PACKAGES
export type Python = { readonly program: string } | { readonly missing: string }

/** How long all downloads of an environment together may take. */
const INSTALL_MS = 90_000
const run = promisify(execFile)
const installed = new Map<PythonPackages, Promise<Python>>()
let plain: Promise<Python> | undefined

/** One with only its standard library. */
export function plainPython(): Promise<Python> {
  plain ??= run('python3', ['-c', 'import ssl, urllib.request']).then(
    () => ({ program: 'python3' }),
    (error: unknown) => ({ missing: `python3 does not run: ${lastLine(error)}` }),
  )
  return plain
}

/** The first call on a machine installs them. */
export function pythonWith(packages: PythonPackages): Promise<Python> {
  const python = installed.get(packages) ?? install(packages)
  installed.set(packages, python)
  return python
}

async function install(packages: PythonPackages): Promise<Python> {
  const requirements = join(import.meta.dirname, `${packages}.txt`)
  const hash = createHash('sha256').update(readFileSync(requirements)).digest('hex').slice(0, 12)
  const folder = join(cacheFolder(), `python-${packages}-${hash}`)
  const program = join(folder, 'bin', 'python')
  if (existsSync(folder)) return { program }
  const unfinished = `${folder}.${process.pid}`
  try {
    mkdirSync(cacheFolder(), { recursive: true })
    await run('python3', ['-m', 'venv', unfinished])
    const args = ['-m', 'pip', 'install', '--quiet', '--no-deps', '-r', requirements]
    await run(join(unfinished, 'bin', 'python'), args, { timeout: INSTALL_MS })
    // It works under another name, too: nothing here runs the scripts in it, which hold that of the folder.
    renameSync(unfinished, folder)
  } catch (error) {
    // Another test process may have been first.
    if (!existsSync(folder)) {
      return { missing: `${PYTHON_PACKAGES[packages]} cannot be installed for python3: ${lastLine(error)}` }
    }
  } finally {
    rmSync(unfinished, { recursive: true, force: true })
  }
  return { program }
}

function lastLine(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error)
  return text.trim().split('\n').at(-1) ?? ''
}
