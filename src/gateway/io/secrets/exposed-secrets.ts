// Files with private keys or tokens that other users of the machine may read.

import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'

/** Readable by group or others. */
const OTHERS_READ = 0o044
const MANIFEST = /\.(ya?ml|json)$/
/** A Secret, or secret bytes inline. Within a line: from each of many empty lines it would look for the next one that is not. */
const SECRET_TEXT = /^[ \t]*(?:-[ \t]*)?["']?kind["']?[ \t]*:[ \t]*["']?Secret\b|["']?(keyData|bearerToken)["']?\s*:/m

/** Those of `files` that others may read; files that cannot be inspected are left out. */
export function exposedFiles(files: readonly string[]): string[] {
  return files.filter((file) => {
    try {
      return (statSync(file).mode & OTHERS_READ) !== 0
    } catch {
      return false
    }
  })
}

/** Manifests of a directory that hold Secrets, keys or tokens, and that others may read. */
export function exposedManifests(dir: string): string[] {
  try {
    const files = readdirSync(dir).filter((name) => MANIFEST.test(name) && !name.startsWith('.'))
    return exposedFiles(files.map((name) => join(dir, name))).filter((file) =>
      SECRET_TEXT.test(readFileSync(file, 'utf8')),
    )
  } catch {
    return []
  }
}
