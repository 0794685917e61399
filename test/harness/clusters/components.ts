// The components of a cluster other than its apiservers: controller manager, scheduler, kwok, and the stand-in for kubelets.

import { mkdirSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import type { Binaries } from '../binaries.ts'
import { withFreePorts } from '../ports.ts'
import { type RunningProcess, startProcess } from '../process.ts'
import type { ClusterFiles } from './cluster-files.ts'
import { kubeRequest } from './kube-request.ts'

export interface ComponentOptions {
  /** Which apiserver or gateway it talks to, and as which user. Default: apiserver 0, as the component itself. */
  readonly kubeconfig?: string
  /** Appended, so that they win. */
  readonly flags?: readonly string[]
  /** Variables of its environment. */
  readonly env?: Readonly<Record<string, string>>
}

/** Streaming for every pod of the cluster: commands run as processes of this machine. */
export interface TestKubelet {
  readonly port: number
  readonly pid: number
  /** What every container has logged; append to it, and `logs -f` shows it. */
  readonly logFile: string
  /** Working directory of every command. */
  readonly workDir: string
  /** `host:port` behind every container port. */
  readonly forwardTarget: string
}

const STAGES = join(import.meta.dirname, '../../data/kwok/stages.yaml')

export function startControllerManager(
  programs: Binaries,
  files: ClusterFiles,
  kubeconfig: string,
  { flags = [], env = {} }: ComponentOptions,
): Promise<RunningProcess> {
  return startSecure(programs['kube-controller-manager'], 'kube-controller-manager', files, env, [
    `--kubeconfig=${kubeconfig}`,
    `--authentication-kubeconfig=${kubeconfig}`,
    `--authorization-kubeconfig=${kubeconfig}`,
    `--service-account-private-key-file=${files.serviceAccountKey}`,
    `--root-ca-file=${files.caFile}`,
    '--use-service-account-credentials',
    '--node-monitor-period=500ms', // a new node waits for the next round to lose its not-ready taint; default 5 s
    '--kube-api-qps=500', // the default, 20, makes the start of its controllers take seconds
    '--kube-api-burst=1000',
    '--leader-elect=false',
    ...flags,
  ])
}

export function startScheduler(
  programs: Binaries,
  files: ClusterFiles,
  kubeconfig: string,
  { flags = [], env = {} }: ComponentOptions,
): Promise<RunningProcess> {
  return startSecure(programs['kube-scheduler'], 'kube-scheduler', files, env, [
    `--kubeconfig=${kubeconfig}`,
    '--kube-api-qps=500',
    '--kube-api-burst=1000',
    '--leader-elect=false',
    ...flags,
  ])
}

function startSecure(
  command: string,
  name: string,
  files: ClusterFiles,
  env: Readonly<Record<string, string>>,
  flags: readonly string[],
): Promise<RunningProcess> {
  return withFreePorts(1, ([port]) =>
    startProcess({
      name,
      command,
      args: [`--secure-port=${port}`, '--bind-address=127.0.0.1', `--cert-dir=${folder(files.dir, name)}`, ...flags],
      env: { HOME: files.dir, ...env },
      logFile: join(files.dir, `${name}.log`),
      ready: async () => {
        const server = `https://127.0.0.1:${port}` // its certificate is its own
        return (await kubeRequest({ server, path: '/healthz' })).status === 200
      },
    }),
  )
}

/** `kubeletPort`: where kwok says that the kubelets of its nodes listen. */
export function startKwok(
  programs: Binaries,
  files: ClusterFiles,
  kubeconfig: string,
  kubeletPort: number | undefined,
  flags: readonly string[],
): Promise<RunningProcess> {
  return withFreePorts(1, ([port]) =>
    startProcess({
      name: 'kwok',
      command: programs.kwok,
      args: [
        `--kubeconfig=${kubeconfig}`,
        '--manage-all-nodes=true',
        '--node-lease-duration-seconds=40',
        `--server-address=127.0.0.1:${port}`,
        '--node-ip=127.0.0.1',
        `--node-port=${kubeletPort ?? port}`,
        `--config=${STAGES}`, // it has none of its own
        ...flags,
      ],
      env: { HOME: files.dir },
      logFile: join(files.dir, 'kwok.log'),
      ready: async () => (await fetch(`http://127.0.0.1:${port}/healthz`)).ok,
    }),
  )
}

/** `forward`: host:port behind every container port; absent = a server of this process that echoes what it gets. */
export async function startKubelet(
  programs: Binaries,
  files: ClusterFiles,
  forward: string | undefined,
): Promise<{ process: RunningProcess; kubelet: TestKubelet }> {
  const logFile = join(files.dir, 'container.log')
  writeFileSync(logFile, '')
  const workDir = folder(files.dir, 'containers')
  const forwardTarget = forward ?? (await startEcho())
  return withFreePorts(1, async ([port = 0]) => {
    const process = await startProcess({
      name: 'kubelet-streaming',
      command: programs['kubelet-streaming'],
      args: [
        `-port=${port}`,
        `-cert=${files.serving.cert}`,
        `-key=${files.serving.key}`,
        `-log=${logFile}`,
        `-dir=${workDir}`,
        `-forward=${forwardTarget}`,
      ],
      logFile: join(files.dir, 'kubelet-streaming.log'),
      ready: async () => {
        const server = `https://127.0.0.1:${port}`
        return (await kubeRequest({ server, ca: files.ca.certPem, path: '/' })).status === 404
      },
    })
    return { process, kubelet: { port, pid: process.pid, logFile, workDir, forwardTarget } }
  })
}

function startEcho(): Promise<string> {
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    socket.on('error', () => socket.destroy())
    socket.pipe(socket)
  })
  return new Promise((resolve, reject) => {
    server.on('error', reject)
    server.listen(0, '127.0.0.1', () => {
      server.unref()
      const address = server.address()
      resolve(typeof address === 'object' && address !== null ? `127.0.0.1:${address.port}` : '')
    })
  })
}

function folder(dir: string, name: string): string {
  mkdirSync(join(dir, name), { recursive: true })
  return join(dir, name)
}
