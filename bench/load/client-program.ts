// Builds the load client from its Go module into a cache folder outside the checkout, under a name that changes with
// its source, as test/harness/binaries.ts does.

import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync } from 'node:fs'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'
import process from 'node:process'

const MODULE = join(import.meta.dirname, 'client-go')

/** The path of the program; builds it when this source has not been built before. Throws when Go is missing or fails. */
export function clientProgram(): string {
  const hash = createHash('sha256').update(`${process.platform} ${process.arch}\n`)
  for (const name of readdirSync(MODULE).sort()) hash.update(`${name}\n`).update(readFileSync(join(MODULE, name)))
  const cache = join(process.env['XDG_CACHE_HOME'] || join(homedir(), '.cache'), 'portcullis-bench')
  const program = join(cache, `h2-${hash.digest('hex').slice(0, 12)}`, 'h2')
  if (existsSync(program)) return program
  mkdirSync(dirname(program), { recursive: true })
  const unfinished = `${program}.${process.pid}`
  // GOWORK: a go.work in a parent folder must not change what is built.
  const env = { ...process.env, GOWORK: 'off' }
  const build = spawnSync('go', ['build', '-buildvcs=false', '-o', unfinished, '.'], { cwd: MODULE, env })
  if (build.error !== undefined) throw new Error('the load client needs Go 1.26 or newer (https://go.dev/dl/)')
  if (build.status !== 0) throw new Error(`building the load client failed: ${build.stderr.toString()}`)
  renameSync(unfinished, program)
  return program
}
