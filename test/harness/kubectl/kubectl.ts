// kubectl: one that ends by itself, and one that runs on (port-forward, logs -f, get -w).

import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { binaries } from '../binaries.ts'
import { endWithThisProcess, guarded } from '../process.ts'
import { waitFor } from '../wait.ts'

export interface KubectlOptions {
  readonly kubeconfig: string
  /** Written to its stdin, which then ends; absent = no stdin. */
  readonly stdin?: string | Buffer
  readonly env?: Readonly<Record<string, string>>
  readonly cwd?: string
  /** HOME, where kubectl caches discovery: give one to calls that should share it. Default: a new one, removed after. */
  readonly home?: string
  /** A kubectl other than the one built for the tests, e.g. `kubectl` for the machine's own. */
  readonly program?: string
  /** Killed after this long. Default 60 s. */
  readonly timeoutMs?: number
}

export interface KubectlResult {
  /** -1 when it was killed. */
  readonly code: number
  readonly stdout: string
  readonly stderr: string
  readonly stdoutBytes: Buffer
}

export interface RunningKubectl {
  readonly pid: number
  readonly stdout: () => string
  readonly stderr: () => string
  /** Resolves with the match once stdout or stderr has it. */
  output(pattern: RegExp): Promise<RegExpExecArray>
  write(text: string): void
  endStdin(): void
  readonly done: Promise<KubectlResult>
  /** Sends SIGTERM and waits for the end. */
  stop(signal?: NodeJS.Signals): Promise<KubectlResult>
}

/** Makes kubectl use SPDY, as before Kubernetes 1.30, where it would use WebSocket. */
export const SPDY: Readonly<Record<string, string>> = {
  KUBECTL_REMOTE_COMMAND_WEBSOCKETS: 'false',
  KUBECTL_PORT_FORWARD_WEBSOCKETS: 'false',
}

/** Runs kubectl to its end. Never throws on a failure of kubectl's: look at `code`. */
export async function kubectl(args: readonly string[], options: KubectlOptions): Promise<KubectlResult> {
  const running = await startKubectl(args, options)
  running.endStdin()
  return running.done
}

/** Starts kubectl; its stdin stays open until `endStdin`. It is killed after `timeoutMs` all the same. */
export async function startKubectl(args: readonly string[], options: KubectlOptions): Promise<RunningKubectl> {
  const program = options.program ?? (await binaries()).kubectl
  const home = options.home ?? mkdtempSync(join(tmpdir(), 'portcullis-kubectl-'))
  const child = spawn(...guarded(program, args), {
    cwd: options.cwd,
    env: {
      ...process.env,
      HOME: home,
      KUBECONFIG: options.kubeconfig,
      KUBECACHEDIR: join(home, 'cache'),
      ...options.env,
    },
  })
  endWithThisProcess(child)
  const stdout: Buffer[] = []
  const stderr: Buffer[] = []
  child.stdout.on('data', (chunk: Buffer) => stdout.push(chunk))
  child.stderr.on('data', (chunk: Buffer) => stderr.push(chunk))
  child.stdin.on('error', () => undefined) // it may end without having read everything
  if (options.stdin !== undefined) child.stdin.write(options.stdin)
  const timeout = setTimeout(() => child.kill('SIGKILL'), options.timeoutMs ?? 60_000)
  const text = (chunks: readonly Buffer[]): string => Buffer.concat(chunks).toString()
  const done = new Promise<KubectlResult>((resolve, reject) => {
    child.on('error', reject)
    child.on('close', (code) => {
      clearTimeout(timeout)
      if (options.home === undefined) rmSync(home, { recursive: true, force: true })
      const stdoutBytes = Buffer.concat(stdout)
      resolve({ code: code ?? -1, stdout: stdoutBytes.toString(), stderr: text(stderr), stdoutBytes })
    })
  })
  return {
    pid: child.pid ?? -1,
    stdout: () => text(stdout),
    stderr: () => text(stderr),
    output: (pattern) =>
      waitFor(`kubectl ${args.join(' ')} to print ${pattern} (so far: ${text(stdout)}${text(stderr)})`, () => {
        return pattern.exec(text(stdout)) ?? pattern.exec(text(stderr)) ?? undefined
      }),
    write: (input) => void child.stdin.write(input),
    endStdin: () => void child.stdin.end(),
    done,
    stop: (signal = 'SIGTERM') => {
      child.kill(signal)
      return done
    },
  }
}
