// Whether a word of a command line is the name of a file: a shell replaces a pattern that is not quoted by the files that match it.

import { existsSync } from 'node:fs'

/** In the current directory. */
export function isFileHere(name: string): boolean {
  return existsSync(name)
}
