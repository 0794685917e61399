// Finds files with private keys or tokens that other users of the machine may read.

import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'

/** Readable by group or others. */
const OTHERS_READ = 0o044
const MANIFEST = /\.(ya?ml|json)$/
/** A Secret, or secret bytes inline. Matches within a line: otherwise, from each of many empty lines, it would search for the next non-empty one. */
const SECRET_TEXT = /^[ \t]*(?:-[ \t]*)?["']?kind["']?[ \t]*:[ \t]*["']?Secret\b|["']?(keyData|bearerToken)["']?\s*:/m

/** Those of `files` that others may read; files that cannot be inspected are omitted. */
export function exposedFiles(files: readonly string[]): string[] {
  return files.filter((file) => {
    try {
      return (statSync(file).mode & OTHERS_READ) !== 0
    } catch {
      return false
    }
  })
}

/** Manifests in a directory that contain Secrets, keys or tokens, and that others may read. */
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
