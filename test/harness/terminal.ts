// A terminal of a fixed size with a program in it, and its screen as a user sees it: tmux draws it, without a window of its own.

import { spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startProcess } from './process.ts'

export interface TerminalOptions {
  readonly program: string
  readonly args: readonly string[]
  /** Added to this process's environment. */
  readonly env: Readonly<Record<string, string>>
}

export interface Terminal {
  /** What it shows now, without colours. When the program has ended, the last line says so: `Pane is dead (status 1, ...)`. */
  screen(): string
  /** A text, or a key by tmux's name: `Enter`, `Escape`, `C-c`. */
  type(...keys: readonly string[]): void
  /** Hangs up on the program, as by closing the window. */
  stop(): Promise<void>
}

const [COLUMNS, LINES] = [160, 40]
const CONFIG = [
  'set -g default-terminal xterm',
  'set -g remain-on-exit on',
  'set -g status off',
  'set -s escape-time 0',
]

export async function startTerminal({ program, args, env }: TerminalOptions): Promise<Terminal> {
  const dir = mkdtempSync(join(tmpdir(), 'portcullis-terminal-'))
  const [socket, config] = [join(dir, 'socket'), join(dir, 'tmux.conf')]
  writeFileSync(config, CONFIG.map((line) => `${line}\n`).join(''))
  const server = await startProcess({
    name: 'tmux',
    command: 'tmux',
    // Not as a daemon, which would outlive this process.
    args: ['-D', '-S', socket, '-f', config],
    env: { TMUX: undefined, LC_ALL: 'C.UTF-8' },
    logFile: join(dir, 'tmux.log'),
    ready: () => existsSync(socket),
  })
  const tmux = (...command: readonly string[]): string => {
    const { status, stdout, stderr } = spawnSync('tmux', ['-u', '-S', socket, ...command], { encoding: 'utf8' })
    if (status !== 0) throw new Error(`tmux ${command.join(' ')}: ${stderr}`)
    return stdout
  }
  const variables = Object.entries(env).flatMap(([name, value]) => ['-e', `${name}=${value}`])
  const size = ['-x', String(COLUMNS), '-y', String(LINES)]
  tmux('new-session', '-d', ...size, ...variables, '--', program, ...args)
  return {
    screen: () => tmux('capture-pane', '-p'),
    type: (...keys) => void tmux('send-keys', ...keys),
    async stop() {
      await server.stop()
      rmSync(dir, { recursive: true, force: true })
    },
  }
}
