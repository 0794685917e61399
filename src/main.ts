// The entry point: passes argv to the command line, and to its commands what they need from the layers above.

import process from 'node:process'
import { createInterface } from 'node:readline'
import { reportUserErrors } from './cli/command/output.ts'
import { VERSION } from './kit/io/program/build.ts'
import { runProgram } from './program/cli/program.ts'

// The reader of a pipe may exit early (`| head`): that is not an error.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code === 'EPIPE') process.exit(0)
  throw error
})

/** Lazy: a command that reads nothing must not hold stdin open. */
async function* stdinLines(): AsyncGenerator<string> {
  yield* createInterface({ input: process.stdin, crlfDelay: Number.POSITIVE_INFINITY })
}

/** For commands that go on until then. */
function interrupted(): AbortSignal {
  const controller = new AbortController()
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => controller.abort())
  return controller.signal
}

/** On standard error, so that the output may go to a file. The end of the input is an empty answer. */
async function ask(question: string): Promise<string> {
  const lines = createInterface({ input: process.stdin, output: process.stderr })
  const closed = new Promise<string>((resolve) => lines.once('close', () => resolve('')))
  const answer = new Promise<string>((resolve) => lines.question(question, resolve))
  return await Promise.race([answer, closed]).finally(() => lines.close())
}

const err = (text: string): void => void process.stderr.write(text)

process.exitCode = await reportUserErrors(err, () =>
  runProgram(process.argv.slice(2), {
    // bin/portcullis starts the kubectl plugin under this title.
    name: process.title === 'kubectl-portcullis' ? 'kubectl portcullis' : 'portcullis',
    version: VERSION,
    settings: async () => (await import('./process/config/config.ts')).ALL_SETTINGS,
    out: (text) => void process.stdout.write(text),
    outBytes: (bytes) => void process.stdout.write(bytes),
    err,
    input: stdinLines(),
    terminal: {
      columns: () => (process.stdout.isTTY ? process.stdout.columns : undefined),
      interrupted,
      ...(process.stdin.isTTY && process.stderr.isTTY && { ask }),
    },
    now: Date.now,
    serve: async (flags) => (await import('./program/serve-command.ts')).serveCommand(flags),
    demo: async (options) => (await import('./demo/demo.ts')).demoCommand(options),
  }),
)
