// The version of the program: that of its package.

import { readFileSync } from 'node:fs'

export const VERSION: string = String(
  Reflect.get(JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as object, 'version'),
)
