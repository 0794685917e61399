// A control group with a limit of memory, in which a test runs a process: version 1 or 2, as root only.

import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

export interface ControlGroup {
  /** Put in front of a command line: what it runs is in the group. */
  readonly prefix: readonly string[]
  /** Bytes: the most that was in use so far, page cache included. */
  peakBytes(): number
  /** Times that the limit was reached: what was in the page cache went then. */
  reached(): number
  /** Times that the kernel ended a process for it. */
  killed(): number
  remove(): void
}

const ROOT = '/sys/fs/cgroup'
let groups = 0

/** Why none can be made; '' = one can. */
export function noControlGroup(): string {
  if (process.getuid?.() !== 0) return 'needs root'
  try {
    createControlGroup(64 * 1024 * 1024).remove()
    return ''
  } catch (error) {
    return `no control group with memory can be made: ${error instanceof Error ? error.message : String(error)}`
  }
}

export function createControlGroup(bytes: number): ControlGroup {
  const name = `portcullis-test-${process.pid}-${++groups}`
  const isFirst = existsSync(join(ROOT, 'memory/memory.limit_in_bytes'))
  const dir = join(ROOT, isFirst ? 'memory' : '', name)
  mkdirSync(dir)
  const read = (file: string): string => readFileSync(join(dir, file), 'utf8')
  const event = (event: string): number =>
    Number(new RegExp(`^${event} (\\d+)`, 'm').exec(read(isFirst ? 'memory.oom_control' : 'memory.events'))?.[1] ?? 0)
  try {
    writeFileSync(join(dir, isFirst ? 'memory.limit_in_bytes' : 'memory.max'), String(bytes))
  } catch (error) {
    rmdirSync(dir)
    throw error
  }
  return {
    prefix: ['sh', '-c', 'echo $$ > "$0" && exec "$@"', join(dir, 'cgroup.procs')],
    peakBytes: () => Number(read(isFirst ? 'memory.max_usage_in_bytes' : 'memory.peak')),
    reached: () => (isFirst ? Number(read('memory.failcnt')) : event('max')),
    killed: () => event('oom_kill'),
    remove: () => rmdirSync(dir),
  }
}
