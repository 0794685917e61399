// Programs of the machine that tests run, and how they come onto it: Debian's packages, as root or by sudo.

import { spawnSync } from 'node:child_process'
import { accessSync, constants } from 'node:fs'
import { delimiter, join } from 'node:path'
import process from 'node:process'

/** Program -> Debian's package that has it. */
export const PACKAGE_OF: Readonly<Record<string, string>> = {
  h2load: 'nghttp2-client',
  nghttp: 'nghttp2-client',
  nghttpd: 'nghttp2-server',
  nghttpx: 'nghttp2-proxy',
  curl: 'curl',
  'redis-server': 'redis-server',
  'redis-cli': 'redis-tools',
  jq: 'jq',
  haproxy: 'haproxy',
  openssl: 'openssl',
  sqlite3: 'sqlite3',
  'systemd-socket-activate': 'systemd',
  zsh: 'zsh',
  keepalived: 'keepalived',
  buildah: 'buildah',
  umoci: 'umoci',
  runc: 'runc',
  'systemd-analyze': 'systemd',
  chromium: 'chromium',
  prometheus: 'prometheus',
  promtool: 'prometheus',
  strace: 'strace',
  ip: 'iproute2',
  iptables: 'iptables',
  python3: 'python3-venv',
  tmux: 'tmux',
}

/** What has to be done before tests can run. */
export type PackagePlan =
  | { readonly action: 'nothing' }
  /** `commands` have to be run, in this order. */
  | { readonly action: 'install'; readonly packages: readonly string[]; readonly commands: readonly Command[] }
  /** It cannot be installed here: one line that says what is missing, and what to type. */
  | { readonly action: 'ask'; readonly line: string }

/** argv */
export type Command = readonly string[]

export interface Machine {
  readonly has: (program: string) => boolean
  readonly isRoot: boolean
  /** Whether sudo would work: without a password, or with a user at the terminal who can type it. */
  readonly maySudo: () => boolean
}

export function planPackages({ has, isRoot, maySudo }: Machine): PackagePlan {
  const missing = Object.keys(PACKAGE_OF).filter((program) => !has(program))
  if (missing.length === 0) return { action: 'nothing' }
  const packages = [...new Set(missing.map((program) => PACKAGE_OF[program] ?? program))]
  const install = `apt-get install --no-install-recommends ${packages.join(' ')}`
  const line = (fix: string): string => `tests need ${missing.join(', ')}: ${fix}, then run this again`
  if (!has('apt-get'))
    return { action: 'ask', line: line(`install them (Debian's packages are ${packages.join(' ')})`) }
  if (!isRoot && !maySudo()) return { action: 'ask', line: line(`as root, run: apt-get update && ${install}`) }
  const prefix = isRoot ? [] : ['sudo']
  const quietly = [...prefix, 'env', 'DEBIAN_FRONTEND=noninteractive', 'apt-get']
  return {
    action: 'install',
    packages,
    commands: [
      [...quietly, 'update', '-q'],
      [...quietly, 'install', '-qy', '--no-install-recommends', ...packages],
    ],
  }
}

export function thisMachine(): Machine {
  return {
    has: isOnPath,
    isRoot: process.getuid?.() === 0,
    maySudo: () => {
      if (!isOnPath('sudo')) return false
      return process.stdin.isTTY || spawnSync('sudo', ['-n', 'true'], { stdio: 'ignore' }).status === 0
    },
  }
}

function isOnPath(program: string): boolean {
  return (process.env['PATH'] ?? '').split(delimiter).some((folder) => {
    try {
      accessSync(join(folder, program), constants.X_OK)
      return folder !== ''
    } catch {
      return false
    }
  })
}
