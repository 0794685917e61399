// What the threads of a process have used of the processors, for tests that compare work with work of the same run.

import { readdirSync, readFileSync } from 'node:fs'

/** CPU seconds, user and system, of all threads of the process that live now. */
export function cpuSeconds(pid: number): number {
  let nanoseconds = 0
  for (const task of readdirSync(`/proc/${pid}/task`)) {
    // A thread may end between the two calls.
    try {
      nanoseconds += Number(readFileSync(`/proc/${pid}/task/${task}/schedstat`, 'utf8').split(' ')[0])
    } catch {}
  }
  return nanoseconds / 1e9
}

/** Resident memory in bytes. */
export function residentBytes(pid: number): number {
  const line = /^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))
  return Number(line?.[1] ?? 0) * 1024
}
