// Programs started by a test: output kept in a file, readiness by polling, ended by their process ids, and never
// outliving the test process however that ends.

import { type ChildProcess, spawn } from 'node:child_process'
import { accessSync, closeSync, constants, fstatSync, openSync, readFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { PortTaken } from './ports.ts'
import { GiveUp, waitFor } from './wait.ts'

export interface ProcessOptions {
  /** For messages. */
  readonly name: string
  readonly command: string
  readonly args: readonly string[]
  /** Added to this process's environment; undefined removes a variable. */
  readonly env?: Readonly<Record<string, string | undefined>>
  readonly cwd?: string
  /** Where its stdout and stderr go, appended. */
  readonly logFile: string
  /** Where its stdout goes instead. */
  readonly stdoutFile?: string
  /** File descriptors of this process that become its 3, 4 ... Default: none. */
  readonly fds?: readonly number[]
  /** Whether it is ready; an error means not yet. */
  readonly ready: () => boolean | Promise<boolean>
  /** Default 60 s. */
  readonly readyTimeoutMs?: number
}

export interface RunningProcess {
  readonly name: string
  readonly pid: number
  readonly running: boolean
  /** Exit code, or the name of the signal that ended it. */
  readonly exited: Promise<number | NodeJS.Signals>
  /** What it has written since it was started. */
  log(): string
  /** Sends a signal and does not wait. */
  signal(signal: NodeJS.Signals): void
  /** Sends `signal` (default SIGTERM), and SIGKILL when it still runs after `graceMs` (default 5 s). Resolves when it is gone. */
  stop(graceMs?: number, signal?: NodeJS.Signals): Promise<number | NodeJS.Signals>
}

/** Lines that mean that a port was taken between looking and listening. */
const PORT_TAKEN = /address already in use|EADDRINUSE/i

const alive = new Set<ChildProcess>()
let watchingExit = false

/** Starts a program and waits until it is ready. Throws, with the end of its output, when it ends or stays silent. */
export async function startProcess(options: ProcessOptions): Promise<RunningProcess> {
  const started = spawnLogged(options)
  try {
    await waitFor(
      `${options.name} to be ready`,
      async () => {
        if (!started.running) throw new GiveUp(`${options.name} ended with ${await started.exited}`)
        return options.ready()
      },
      { timeoutMs: options.readyTimeoutMs ?? 60_000 },
    )
    return started
  } catch (error) {
    await started.stop(0)
    const log = started.log()
    if (PORT_TAKEN.test(log)) throw new PortTaken(`${options.name}: a port was taken`)
    throw new Error(`${error instanceof Error ? error.message : String(error)}; its output ends:\n${log.slice(-3000)}`)
  }
}

/** Ends a child when this process ends; `startProcess` does it by itself. */
export function endWithThisProcess(child: ChildProcess): void {
  if (!watchingExit) {
    watchingExit = true
    process.on('exit', killAll)
    // Their default action ends the process without an 'exit' event.
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
      process.once(signal, () => {
        killAll()
        process.kill(process.pid, signal)
      })
    }
  }
  alive.add(child)
  child.once('exit', () => alive.delete(child))
}

/** A command line that the kernel ends together with this process, even when this one is killed; else the same one. */
export function guarded(command: string, args: readonly string[]): [string, readonly string[]] {
  return SETPRIV === undefined ? [command, args] : [SETPRIV, ['--pdeathsig', 'KILL', '--', command, ...args]]
}

const SETPRIV = process.platform === 'linux' ? inPath('setpriv') : undefined

function spawnLogged(options: ProcessOptions): RunningProcess {
  const logFd = openSync(options.logFile, 'a')
  const stdoutFd = options.stdoutFile === undefined ? logFd : openSync(options.stdoutFile, 'a')
  const logStart = fstatSync(logFd).size
  const [command, args] = guarded(options.command, options.args)
  const child = spawn(command, args, {
    cwd: options.cwd,
    env: { ...process.env, ...options.env },
    stdio: ['ignore', stdoutFd, logFd, ...(options.fds ?? [])], // files, not pipes: a busy program costs this process nothing
  })
  endWithThisProcess(child)
  closeSync(logFd)
  if (stdoutFd !== logFd) closeSync(stdoutFd)
  const exited = new Promise<number | NodeJS.Signals>((resolve) => {
    child.once('exit', (code, signal) => resolve(code ?? signal ?? 'SIGKILL'))
    child.once('error', () => resolve(127))
  })
  const isRunning = (): boolean => child.pid !== undefined && child.exitCode === null && child.signalCode === null
  return {
    name: options.name,
    pid: child.pid ?? -1,
    get running() {
      return isRunning()
    },
    exited,
    log: () => readFileSync(options.logFile).subarray(logStart).toString(),
    signal: (signal) => void child.kill(signal),
    async stop(graceMs = 5000, signal = 'SIGTERM') {
      if (!isRunning()) return exited
      child.kill(graceMs > 0 ? signal : 'SIGKILL')
      const impatient = setTimeout(() => child.kill('SIGKILL'), graceMs)
      const result = await exited
      clearTimeout(impatient)
      return result
    },
  }
}

function killAll(): void {
  for (const child of alive) child.kill('SIGKILL')
}

function inPath(program: string): string | undefined {
  for (const folder of (process.env['PATH'] ?? '').split(delimiter)) {
    try {
      accessSync(join(folder, program), constants.X_OK)
      return join(folder, program)
    } catch {
      // not in this folder
    }
  }
  return undefined
}
