// A run before the other programs of a shared machine, where that is allowed (root): otherwise a busy neighbour is what
// is measured.

import { spawn } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { setPriority } from 'node:os'
import process from 'node:process'

const NICE = -15
const MARK = 'PORTCULLIS_BENCH_PRIORITY'

/** True in the process that shall do the work. Otherwise that is a child in a session of its own, and this one waits for it. */
export function inPriority(): boolean {
  if (process.env[MARK] === 'done') return true
  try {
    setPriority(NICE)
  } catch {
    return true // not root
  }
  // Linux shares the CPU between sessions first (sched(7), autogroup), so the nice value alone would count for nothing.
  const options = { detached: true, stdio: 'inherit', env: { ...process.env, [MARK]: 'done' } } as const
  const child = spawn(process.execPath, process.argv.slice(1), options)
  try {
    writeFileSync(`/proc/${child.pid}/autogroup`, String(NICE))
  } catch {} // no autogroups: the nice value is enough
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => child.kill(signal))
  child.once('exit', (code) => process.exit(code ?? 1))
  return false
}
