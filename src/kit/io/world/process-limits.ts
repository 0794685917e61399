// The limits of this process: its memory, by its control group, version 1 or 2, or one of that group's ancestors, and its open files.

import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

/** Reads a file; undefined = it does not exist. */
type ReadText = (path: string) => string | undefined

/** Larger values mean "none": version 1 expresses that by the largest number of pages. */
const NO_LIMIT = 2 ** 60

/** Bytes; 0 = no limit, or unknown. @param read default: the file system */
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

/** In a container the path may be the host's, whose groups are not visible: then the root is the container's own. */
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

/**
 * How many files this process may have open; sockets count, too. The hard limit, to which Node raises the soft one at startup; 0 = unknown, or
 * unlimited.
 */
export function openFilesLimit(read: () => string = () => readFileSync('/proc/self/limits', 'utf8')): number {
  try {
    return Number(/^Max open files\s+\S+\s+(\d+)/m.exec(read())?.[1] ?? 0)
  } catch {
    return 0
  }
}
