// How many files this process may have open: sockets are files.

import { readFileSync } from 'node:fs'

/** The hard limit, to which Node raises its own at the start; 0 = nothing says so, or there is none. */
export function openFilesLimit(read: () => string = () => readFileSync('/proc/self/limits', 'utf8')): number {
  try {
    return Number(/^Max open files\s+\S+\s+(\d+)/m.exec(read())?.[1] ?? 0)
  } catch {
    return 0
  }
}
