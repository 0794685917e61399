// Which files have tests that `npm run test:long` runs.

import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

const TITLE_ENDS = /\(long\)['"`]/
const IMPORTED = /^(?:import|\}) .*from '(\.{1,2}\/[^'$]+)'$/gm

/** Whether the file, or one that it imports and that makes its tests, has a test whose title ends in "(long)". */
export function hasLongTests(file: string): boolean {
  const text = readFileSync(file, 'utf8')
  if (TITLE_ENDS.test(text)) return true
  return Array.from(text.matchAll(IMPORTED), ([, path = '']) => join(dirname(file), path)).some((path) =>
    TITLE_ENDS.test(readFileSync(path, 'utf8')),
  )
}
