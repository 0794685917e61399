// The gateway as it was before its own HTTP/2 engine: the last commit on node:http2, for one comparison.

import { execFileSync } from 'node:child_process'
import { mkdirSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'

const LAST_ON_NODE_HTTP2 = 'cd33935'
const ROOT = join(import.meta.dirname, '../..')

/** Unpacks it into `folder`, with this checkout's dependencies, and returns the folder. Throws without the history. */
export function baseline(folder: string): string {
  mkdirSync(folder, { recursive: true })
  const archive = join(folder, 'source.tar')
  try {
    execFileSync('git', ['archive', '--output', archive, LAST_ON_NODE_HTTP2], { cwd: ROOT, stdio: 'pipe' })
  } catch (error) {
    throw new Error(`commit ${LAST_ON_NODE_HTTP2} is not in the history of this checkout`, { cause: error })
  }
  execFileSync('tar', ['-xf', archive], { cwd: folder })
  symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'))
  return folder
}
