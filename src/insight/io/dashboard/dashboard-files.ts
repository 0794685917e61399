// The dashboard's files: from the build, or, when running from sources, built on first use.

import { execFile } from 'node:child_process'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import process from 'node:process'
import { promisify } from 'node:util'
import { PROGRAM_FILES } from '../../../kit/io/program/build.ts'

type Files = ReadonlyMap<string, Uint8Array>

const MAX_BYTES = 8 * 1024 * 1024
let loaded: Promise<Files> | undefined

/** Keyed by name; read once. Rejects if there are none; the next call tries again. */
export function dashboardFiles(): Promise<Files> {
  loaded ??= load().catch((error: unknown) => {
    loaded = undefined
    throw error
  })
  return loaded
}

async function load(): Promise<Files> {
  const { dashboard, dashboardBuild } = PROGRAM_FILES
  if (dashboardBuild !== '') {
    const { stdout } = await promisify(execFile)(process.execPath, [dashboardBuild], { maxBuffer: MAX_BYTES })
    const made: Record<string, string> = JSON.parse(stdout)
    return new Map(Object.entries(made).map(([name, text]) => [name, Buffer.from(text)]))
  }
  const names = (await readdir(dashboard)).filter((name) => !name.endsWith('.map'))
  return new Map(await Promise.all(names.map(async (name) => [name, await readFile(join(dashboard, name))] as const)))
}
