// A Python with httpx and h2 in a virtual environment beside the other programs that tests run: the standard library has no HTTP/2.

import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import process from 'node:process'
import { promisify } from 'node:util'
import { cacheFolder } from '../binaries.ts'

const REQUIREMENTS = join(import.meta.dirname, 'requirements.txt')
/** How long all downloads together may take. */
const INSTALL_MS = 45_000
const run = promisify(execFile)

export type Python = { readonly program: string } | { readonly missing: string }

let plain: Promise<Python> | undefined
let withHttpx: Promise<Python> | undefined

/** One with only its standard library. */
export function plainPython(): Promise<Python> {
  plain ??= run('python3', ['-c', 'import ssl, urllib.request']).then(
    () => ({ program: 'python3' }),
    (error: unknown) => ({ missing: `python3 does not run: ${lastLine(error)}` }),
  )
  return plain
}

/** One with httpx and h2. The first call on a machine installs them. */
export function pythonWithHttpx(): Promise<Python> {
  withHttpx ??= install()
  return withHttpx
}

async function install(): Promise<Python> {
  const hash = createHash('sha256').update(readFileSync(REQUIREMENTS)).digest('hex').slice(0, 12)
  const folder = join(cacheFolder(), `python-httpx-${hash}`)
  const program = join(folder, 'bin', 'python')
  if (existsSync(folder)) return { program }
  const unfinished = `${folder}.${process.pid}`
  try {
    mkdirSync(cacheFolder(), { recursive: true })
    await run('python3', ['-m', 'venv', unfinished])
    const args = ['-m', 'pip', 'install', '--quiet', '--no-deps', '-r', REQUIREMENTS]
    await run(join(unfinished, 'bin', 'python'), args, { timeout: INSTALL_MS })
    // It works under another name, too: nothing here runs the scripts in it, which hold that of the folder.
    renameSync(unfinished, folder)
  } catch (error) {
    // Another test process may have been first.
    if (!existsSync(folder)) return { missing: `httpx and h2 cannot be installed for python3: ${lastLine(error)}` }
  } finally {
    rmSync(unfinished, { recursive: true, force: true })
  }
  return { program }
}

function lastLine(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error)
  return text.trim().split('\n').at(-1) ?? ''
}
