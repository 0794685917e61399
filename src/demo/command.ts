// `portcullis demo` as a command: start, run until a signal, exit code. With --real it hands over to the test harness,
// which can build and start real clusters.

import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import process from 'node:process'
import { errorWithFix } from '../api/validation/error-message.ts'
import { UserError } from '../api/validation/field-errors.ts'
import { ConfigError } from '../app/config/config.ts'
import { onStopSignal } from '../app/serve-command.ts'
import { PROGRAM_FILES } from '../io/program/build.ts'
import type { StartBackends } from './clusters.ts'
import { type RunningDemo, startDemo } from './demo.ts'

export interface DemoCommandOptions {
  /** Real kube-apiservers. */
  readonly real: boolean
  readonly listen: string
  readonly adminListen: string
  readonly controlListen: string
  readonly dir: string
}

/** In the checkout only: a deployed gateway has no use for it. */
const REAL_DEMO = join(PROGRAM_FILES.testHarness, 'real-demo.ts')

/** Resolves with the exit code when the demo has ended. */
export async function demoCommand(options: DemoCommandOptions): Promise<number> {
  return options.real ? await runRealDemo(options) : await runDemo(options)
}

/** `clusters`: what to put behind the gateway in place of the clusters inside this process. */
export async function runDemo(options: Omit<DemoCommandOptions, 'real'>, clusters?: StartBackends): Promise<number> {
  let demo: RunningDemo
  try {
    demo = await startDemo({
      ...options,
      out: (text) => void process.stdout.write(text),
      ...(clusters === undefined ? {} : { clusters }),
    })
  } catch (error) {
    if (!(error instanceof UserError || error instanceof ConfigError)) throw error
    process.stderr.write(`error: ${errorWithFix(error)}\n`)
    return 1
  }
  await onStopSignal().stopped(demo)
  return 0
}

async function runRealDemo({ listen, adminListen, controlListen, dir }: DemoCommandOptions): Promise<number> {
  if (PROGRAM_FILES.testHarness === '' || !existsSync(REAL_DEMO)) {
    process.stderr.write('error: --real needs the source checkout, with its test harness; run it there\n')
    return 1
  }
  // A process group of its own: Ctrl-C reaches it once, through us, however it was sent.
  const child = spawn(process.execPath, [REAL_DEMO, listen, adminListen, controlListen, dir], {
    stdio: 'inherit',
    detached: true,
  })
  process.on('SIGINT', () => child.kill('SIGINT'))
  process.on('SIGTERM', () => child.kill('SIGTERM'))
  return await new Promise((resolve, reject) => {
    child.on('error', reject)
    child.on('close', (code) => resolve(code ?? 1))
  })
}
