// A container as a kubelet starts one of namespace policy "restricted": numeric user, no capabilities, no new privileges, a read-only
// root, the runtime's seccomp profile; or with what deploy/systemd/portcullis.service allows. On the network of the machine, so that a
// test reaches its ports.

import { readFileSync, writeFileSync } from 'node:fs'
import { arch } from 'node:os'
import { join } from 'node:path'
import { type RunningProcess, startProcess } from '../harness/process.ts'
import { run } from './built-image.ts'

export const DATA_DIR = '/var/lib/portcullis'
/** As containers/common has it, which Debian's buildah needs: what Podman and CRI-O call RuntimeDefault. */
const SECCOMP = '/usr/share/containers/seccomp.json'

const ARCHITECTURE = arch() === 'x64' ? 'SCMP_ARCH_X86_64' : 'SCMP_ARCH_AARCH64'

export interface ContainerOptions {
  /** Where `runc` keeps its state, and logs go. */
  readonly dir: string
  /** From `umoci unpack`. */
  readonly bundle: string
  readonly args: readonly string[]
  /** System calls that are allowed, and /proc of processes only, as the unit has it. Default: the runtime's profile, the whole /proc. */
  readonly unitSyscalls?: readonly string[]
  readonly ready: () => Promise<boolean>
}

export interface Container {
  /** The process ID of PID 1, as this machine counts. */
  readonly pid: number
  readonly process: RunningProcess
  /** A command inside: what it printed, and its exit code. */
  exec(...command: readonly string[]): { readonly code: number; readonly output: string }
  /** To PID 1. */
  signal(name: 'TERM' | 'KILL'): void
  remove(): void
}

export async function startContainer({ dir, bundle, args, unitSyscalls, ready }: ContainerOptions): Promise<Container> {
  const id = `portcullis-${process.pid}-${unitSyscalls === undefined ? 'runtime' : 'unit'}`
  const runc = ['--root', join(dir, 'runc')]
  restrict(join(bundle, 'config.json'), args, unitSyscalls)
  const remove = (): void => void run('runc', [...runc, 'delete', '--force', id])
  try {
    const started = await startProcess({
      name: 'container',
      command: 'runc',
      args: [...runc, 'run', '--bundle', bundle, id],
      logFile: join(dir, 'container.log'),
      ready,
    })
    const { pid } = JSON.parse(run('runc', [...runc, 'state', id])) as { pid: number }
    return {
      pid,
      process: started,
      exec(...command) {
        try {
          return { code: 0, output: run('runc', [...runc, 'exec', id, ...command]) }
        } catch (error) {
          return { code: 1, output: String(error) }
        }
      },
      signal: (name) => void run('runc', [...runc, 'kill', id, name]),
      remove,
    }
  } catch (error) {
    remove()
    throw error
  }
}

/** What `umoci unpack` made of the image's configuration, with what the kubelet adds; the image's user and entry point stay. */
function restrict(file: string, args: readonly string[], unitSyscalls: readonly string[] | undefined): void {
  const config = JSON.parse(readFileSync(file, 'utf8'))
  const [entry] = config.process.args
  config.process = {
    ...config.process,
    terminal: false,
    args: [entry, ...args],
    capabilities: {},
    noNewPrivileges: true,
    rlimits: [],
  }
  config.root.readonly = true
  config.linux.namespaces = config.linux.namespaces.filter(({ type }: { type: string }) => type !== 'network')
  config.linux.seccomp = unitSyscalls === undefined ? runtimeProfile() : allowOnly(unitSyscalls)
  if (unitSyscalls !== undefined) Object.assign(config.linux, { maskedPaths: [], readonlyPaths: [] })
  for (const mount of config.mounts) {
    const onlyProcesses = mount.destination === '/proc' && unitSyscalls !== undefined
    if (onlyProcesses) mount.options = ['nosuid', 'nodev', 'noexec', 'subset=pid', 'hidepid=invisible']
    if (mount.destination === DATA_DIR)
      mount.options = ['nosuid', 'nodev', 'noexec', 'uid=65532', 'gid=65532', 'mode=0700']
  }
  writeFileSync(file, JSON.stringify(config))
}

/** Others fail with EPERM, as SystemCallErrorNumber says. runc needs two of its own until the program runs. */
function allowOnly(names: readonly string[]): object {
  const syscalls = [{ names: [...names, 'execve', 'capset'], action: 'SCMP_ACT_ALLOW' }]
  return { defaultAction: 'SCMP_ACT_ERRNO', defaultErrnoRet: 1, architectures: [ARCHITECTURE], syscalls }
}

/** For a process without capabilities, as a container runtime derives it from its file. */
function runtimeProfile(): object {
  const profile = JSON.parse(readFileSync(SECCOMP, 'utf8'))
  const machine = arch() === 'x64' ? 'amd64' : arch()
  const applies = ({ includes = {} }: { includes?: { arches?: string[]; caps?: string[] } }): boolean =>
    includes.caps === undefined && (includes.arches === undefined || includes.arches.includes(machine))
  return {
    defaultAction: profile.defaultAction,
    defaultErrnoRet: profile.defaultErrnoRet,
    architectures: [ARCHITECTURE],
    syscalls: profile.syscalls.filter(applies).map(({ names, action, args, errnoRet }: Record<string, unknown>) => ({
      names,
      action,
      ...(Array.isArray(args) && args.length > 0 && { args }),
      ...(errnoRet !== undefined && action === 'SCMP_ACT_ERRNO' && { errnoRet }),
    })),
  }
}
