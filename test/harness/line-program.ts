// Programs that are told what to do: a command is a line on stdin, and its answer is a line of JSON on stdout.

import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { endWithThisProcess, guarded } from './process.ts'

export interface LineProgram<Answer> {
  readonly pid: number
  /** Resolves with the answer; commands are answered in order. Rejects, with the end of its stderr, when the program has ended. */
  command(line: string): Promise<Answer>
  /** Kills it, and waits for its end. */
  kill(): Promise<void>
}

const KEPT_CHARACTERS = 2000

/**
 * Resolves once it has written its first line, which says that it is ready.
 * @param name for errors
 */
export async function startLineProgram<Answer>(
  name: string,
  program: string,
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<LineProgram<Answer>> {
  const [command, commandArgs] = guarded(program, args)
  const child = spawn(command, commandArgs, { env: { ...process.env, ...env }, stdio: ['pipe', 'pipe', 'pipe'] })
  endWithThisProcess(child)
  const ended = new Promise<void>((resolve) => child.once('close', () => resolve()))
  let errors = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    errors = (errors + text).slice(-KEPT_CHARACTERS)
  })
  child.stdin.on('error', () => undefined)
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  const next = async <T>(): Promise<T> => {
    const { value, done } = await lines.next()
    if (done !== true) return JSON.parse(value) as T
    await ended
    throw new Error(`${name} ended: ${errors.trim()}`)
  }
  await next()
  return {
    pid: child.pid ?? -1,
    command(line) {
      child.stdin.write(`${line}\n`)
      return next<Answer>()
    },
    async kill() {
      child.kill('SIGKILL')
      await ended
    },
  }
}
