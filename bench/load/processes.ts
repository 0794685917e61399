// Processes of a run: started on the cores they are given, asked for their CPU time and memory, ended by their id.

import { type ChildProcess, spawn } from 'node:child_process'
import { closeSync, openSync, readdirSync, readFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import process from 'node:process'
import { createInterface, type Interface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'

/** 'proxy' is core 0, 'load' core 1 (client and upstream); 'any' leaves the choice to the kernel. */
export type Place = 'proxy' | 'load' | 'any'

const PLACES: Readonly<Record<Place, string | undefined>> =
  availableParallelism() > 1
    ? { proxy: '0', load: '1', any: undefined }
    : { proxy: undefined, load: undefined, any: undefined }

/** A process that listens on `port`. */
export interface Server {
  readonly name: string
  readonly pid: number
  readonly port: number
  /** Since when it listens, as `performance.now()`. */
  readonly listensSinceMs: number
  /** Ends it at once and waits for that. */
  stop(): Promise<void>
  /** Sends `signal` and waits for the end, at most `seconds`. */
  end(signal: NodeJS.Signals, seconds: number): Promise<void>
}

export interface ServerOptions {
  readonly name: string
  readonly port: number
  readonly command: string
  readonly args: readonly string[]
  readonly place: Place
  readonly cwd?: string
  /** A file for what it prints. Default: it is thrown away. */
  readonly output?: string | undefined
  /** How long until it listens. Default 20 s. */
  readonly startSeconds?: number
}

/** Every process that still runs. */
const running = new Set<ChildProcess>()

/** Kills them, and waits for their end. */
export async function stopAll(): Promise<void> {
  const ends = [...running].map((child) => new Promise((resolve) => child.once('exit', resolve)))
  for (const child of running) child.kill('SIGKILL')
  await Promise.all(ends)
}

function start(command: string, args: readonly string[], place: Place, cwd?: string, output?: string): ChildProcess {
  const core = PLACES[place]
  const [program, ...rest] = core === undefined ? [command, ...args] : ['taskset', '-c', core, command, ...args]
  const file = output === undefined ? undefined : openSync(output, 'w')
  // taskset executes the program in its own place: the process id is the program's.
  const child = spawn(program ?? command, rest, {
    stdio: ['pipe', file ?? 'pipe', 'pipe'],
    ...(cwd === undefined ? {} : { cwd }),
  })
  if (file !== undefined) closeSync(file)
  child.stdin?.on('error', () => undefined)
  running.add(child)
  child.once('exit', () => running.delete(child))
  return child
}

function errorsOf(child: ChildProcess): () => string {
  let errors = ''
  child.stderr?.on('data', (chunk: Buffer) => {
    errors = (errors + chunk.toString()).slice(-2000)
  })
  child.on('error', (error) => {
    errors += error.message
  })
  return () => errors.trim()
}

/** Resolves when the port listens. */
export async function startServer(options: ServerOptions): Promise<Server> {
  const child = start(options.command, options.args, options.place, options.cwd, options.output)
  child.stdout?.resume()
  const errors = errorsOf(child)
  const exit = new Promise<void>((resolve) => child.once('close', () => resolve()))
  const deadline = performance.now() + (options.startSeconds ?? 20) * 1000
  while (!listens(options.port)) {
    if (child.exitCode !== null || child.pid === undefined || performance.now() > deadline) {
      child.kill('SIGKILL')
      throw new Error(`${options.name} did not start: ${errors()}`)
    }
    await sleep(20)
  }
  return {
    name: options.name,
    pid: child.pid ?? 0,
    port: options.port,
    listensSinceMs: performance.now(),
    stop: () => {
      child.kill('SIGKILL')
      return exit
    },
    end: async (signal, seconds) => {
      child.kill(signal)
      await Promise.race([exit, sleep(seconds * 1000, undefined, { ref: false })])
    },
  }
}

/** A load client: prints JSON lines, goes on when requested. */
export class Client {
  readonly #child: ChildProcess
  readonly #lines: Interface
  readonly #iterator: AsyncIterator<string>
  readonly #errors: () => string

  constructor(program: string, args: readonly string[], place: Place) {
    this.#child = start(program, args, place)
    this.#errors = errorsOf(this.#child)
    this.#lines = createInterface({ input: this.#child.stdout ?? process.stdin })
    this.#iterator = this.#lines[Symbol.asyncIterator]()
  }

  get pid(): number {
    return this.#child.pid ?? 0
  }

  /** The next line. Throws with what the client said on stderr when it has ended. */
  async next<T>(): Promise<T> {
    const { value, done } = await this.#iterator.next()
    if (done !== true) return JSON.parse(value) as T
    if (this.#child.exitCode === null) await new Promise((resolve) => this.#child.once('close', resolve))
    throw new Error(`load client: ${this.#errors() || `ended with code ${this.#child.exitCode}`}`)
  }

  go(): void {
    this.#child.stdin?.write('\n')
  }

  async stop(): Promise<void> {
    const exit =
      this.#child.exitCode === null ? new Promise((resolve) => this.#child.once('close', resolve)) : undefined
    this.#child.kill('SIGKILL')
    this.#lines.close()
    await exit
  }
}

const CHILD_MS = 5_000

let nextPort = 20_000 + (process.pid % 100) * 100

/**
 * The first of `count` (default 1), one after the other, that are free. Below the range from which the kernel takes the
 * ports of clients (ip_local_port_range): no other process takes one meanwhile.
 */
export function freePort(count: number = 1): number {
  let first = nextPort
  for (let port = first; port < first + count; port++) if (listens(port)) first = port + 1
  nextPort = first + count
  return first
}

function listens(port: number): boolean {
  const hex = port.toString(16).toUpperCase().padStart(4, '0')
  // State 0A is LISTEN (proc(5)).
  return readFileSync('/proc/net/tcp', 'utf8').includes(`:${hex} 00000000:0000 0A`)
}

/** CPU seconds of all threads of a process that live now, user and system. */
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

/** The first process that this one starts, at once or soon. Throws when there is none. */
export async function childOf(pid: number): Promise<number> {
  const deadline = performance.now() + CHILD_MS
  for (;;) {
    const child = Number(readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ')[0])
    if (child > 0) return child
    if (performance.now() > deadline) throw new Error(`process ${pid} has started no other one`)
    await sleep(20)
  }
}

/** Resident memory, bytes. */
export function residentBytes(pid: number): number {
  const line = /^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))
  return Number(line?.[1] ?? 0) * 1024
}
