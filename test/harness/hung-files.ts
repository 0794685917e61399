// A test file that has run all its tests may still never exit: something holds its event loop, or its process spins while it closes. `run` of node:test
// waits for it until the suite is broken off, and then nothing runs again.

import { readFileSync } from 'node:fs'
import process from 'node:process'

/** How often children are looked at, at least. */
const LOOK_MS = 10_000

/**
 * Kills each child process that runs a test file for longer than that; the file then fails, named with the signal. Only Linux names a process's
 * children; elsewhere the suite's own limit is the only one.
 */
export class HungFiles implements Disposable {
  readonly #limitMs: number
  readonly #timer: NodeJS.Timeout
  /** When each was first seen, by process id, on the clock of `performance.now()`. */
  #seen = new Map<number, number>()

  /** Begins. */
  constructor(minutes: number) {
    this.#limitMs = minutes * 60_000
    this.#timer = setInterval(() => this.#look(), Math.min(LOOK_MS, this.#limitMs / 4))
  }

  #look(): void {
    const now = performance.now()
    const running = testFiles()
    this.#seen = new Map(running.map((pid) => [pid, this.#seen.get(pid) ?? now]))
    for (const [pid, since] of this.#seen) if (now - since > this.#limitMs) kill(pid)
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer)
  }
}

/** The children of this process that run a test file. */
function testFiles(): number[] {
  const children = read(`/proc/self/task/${process.pid}/children`).trim()
  if (children === '') return []
  return children
    .split(' ')
    .map(Number)
    .filter((pid) => /\.test\.m?[jt]s\0/.test(read(`/proc/${pid}/cmdline`)))
}

/** '' if there is no such file, or no longer. */
function read(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {} // it has just ended
}
