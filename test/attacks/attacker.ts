// Starts the process that attacks, and tells it what to do.

import { type ChildProcess, spawn } from 'node:child_process'
import { join } from 'node:path'
import process from 'node:process'
import { createInterface } from 'node:readline'
import { endWithThisProcess, guarded } from '../harness/process.ts'
import type { Command, Outcome, Report, TargetMessage } from './worker-messages.ts'

const WORKER = join(import.meta.dirname, 'worker.ts')

export class Attacker {
  readonly #child: ChildProcess
  readonly #reports: AsyncIterator<string>
  /** The outcome of what was begun last, once it has ended. */
  #outcome: Outcome | undefined

  /** @param prefix put in front of its command line, e.g. `taskset -c 1` */
  static async start(prefix: readonly string[] = []): Promise<Attacker> {
    const attacker = new Attacker(prefix)
    await attacker.#next()
    return attacker
  }

  private constructor(prefix: readonly string[]) {
    const [first = '', ...rest] = [...prefix, process.execPath, WORKER]
    const [command, args] = guarded(first, rest)
    const env = { ...process.env }
    // A child that sees it believes to be a test.
    delete env['NODE_TEST_CONTEXT']
    this.#child = spawn(command, args, { stdio: ['pipe', 'pipe', 'inherit'], env })
    endWithThisProcess(this.#child)
    this.#reports = createInterface({ input: this.#child.stdout ?? process.stdin })[Symbol.asyncIterator]()
  }

  get pid(): number {
    return this.#child.pid ?? 0
  }

  /** Resolves when it has begun to connect. Throws when the attack failed before. */
  async begin(attack: string, target: TargetMessage): Promise<void> {
    this.#outcome = undefined
    this.#tell({ attack, target })
    const report = await this.#next()
    if ('outcome' in report) throw new Error(`${attack} could not begin: ${report.outcome.error}`)
  }

  /** Resolves when it has got one of the answers that must come. */
  async defined(): Promise<void> {
    const report = await this.#next()
    if ('outcome' in report) throw new Error(`it ended before it was answered: ${JSON.stringify(report.outcome)}`)
  }

  /** Ends what was begun, if it has not ended by itself. */
  async stop(): Promise<Outcome> {
    if (this.#outcome === undefined) this.#tell({ stop: true })
    while (this.#outcome === undefined) await this.#next()
    return this.#outcome
  }

  end(): void {
    this.#child.kill('SIGKILL')
  }

  #tell(command: Command): void {
    this.#child.stdin?.write(`${JSON.stringify(command)}\n`)
  }

  async #next(): Promise<Report> {
    const { value, done } = await this.#reports.next()
    if (done === true) throw new Error('the attacking process has ended')
    const report = JSON.parse(value) as Report
    if ('outcome' in report) this.#outcome = report.outcome
    return report
  }
}
