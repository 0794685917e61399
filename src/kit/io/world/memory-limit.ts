// The memory that the system grants this process: the limit of its control group, version 1 or 2, or of one that this one is in.

import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

/** Reads a file; undefined = it is not there. */
export type ReadText = (path: string) => string | undefined

/** Larger ones mean "none": version 1 says so by the largest number of pages. */
const NO_LIMIT = 2 ** 60

/** Bytes; 0 = there is no limit, or nothing says so. @param read default: the file system */
export function memoryLimit(read: ReadText = readText): number {
  const groups = read('/proc/self/cgroup') ?? ''
  const limits: number[] = []
  for (const line of groups.split('\n')) {
    const [, id = '', controllers = '', path = ''] = /^(\d+):([^:]*):(.*)$/.exec(line) ?? []
    if (id === '0' && controllers === '') limits.push(...alongPath('/sys/fs/cgroup', path, 'memory.max', read))
    if (controllers.split(',').includes('memory')) {
      limits.push(...alongPath('/sys/fs/cgroup/memory', path, 'memory.limit_in_bytes', read))
    }
  }
  return limits.length === 0 ? 0 : Math.min(...limits)
}

/** In a container the path may be that of the host, whose groups are not there: then the root is the container's own. */
function alongPath(root: string, path: string, file: string, read: ReadText): number[] {
  const limits: number[] = []
  for (let at = path; ; at = dirname(at)) {
    const limit = parseLimit(read(join(root, at, file)))
    if (limit > 0) limits.push(limit)
    if (at === '/' || at === '.' || at === '') return limits
  }
}

function parseLimit(text: string | undefined): number {
  const trimmed = text?.trim() ?? ''
  if (!/^\d+$/.test(trimmed)) return 0
  const bytes = Number(trimmed)
  return bytes >= NO_LIMIT ? 0 : bytes
}

function readText(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return undefined
  }
}
