// The limit of open files of this process: sockets count, too.

import { readFileSync } from 'node:fs'

/** The hard limit, to which Node raises the soft one at startup; 0 = unknown, or unlimited. */
export function openFilesLimit(read: () => string = () => readFileSync('/proc/self/limits', 'utf8')): number {
  try {
    return Number(/^Max open files\s+\S+\s+(\d+)/m.exec(read())?.[1] ?? 0)
  } catch {
    return 0
  }
}
