// kube-apiserver.

import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import type { Binaries } from '../binaries.ts'
import { withFreePorts } from '../ports.ts'
import { type RunningProcess, startProcess } from '../process.ts'
import type { ClusterFiles } from './cluster-files.ts'
import { kubeRequest } from './kube-request.ts'

export interface TestApiserver {
  /** `https://127.0.0.1:PORT` */
  readonly url: string
  readonly port: number
  readonly pid: number
  /** Sends a signal (default SIGKILL) and waits until the process is gone; not so for SIGSTOP and SIGCONT. */
  kill(signal?: NodeJS.Signals): Promise<void>
  /** Starts it again on its port (ending it first if it runs) and waits until it is ready. */
  restart(): Promise<void>
  log(): string
}

/** Starts `count` kube-apiservers on one etcd, at the same time; they share every key, so a token of one works on all. */
export async function startApiservers(
  programs: Binaries,
  files: ClusterFiles,
  etcdUrl: string,
  count: number,
  extraFlags: readonly string[],
): Promise<TestApiserver[]> {
  const start = (index: number): Promise<TestApiserver> =>
    withFreePorts(1, ([port]) => startApiserver(programs, files, etcdUrl, index, port ?? 0, extraFlags))
  const started = await Promise.allSettled(Array.from({ length: count }, (_, index) => start(index)))
  const failed = started.find((result) => result.status === 'rejected')
  const running = started.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []))
  if (failed === undefined) return running
  await Promise.all(running.map((apiserver) => apiserver.kill()))
  throw failed.reason
}

async function startApiserver(
  programs: Binaries,
  files: ClusterFiles,
  etcdUrl: string,
  index: number,
  port: number,
  extraFlags: readonly string[],
): Promise<TestApiserver> {
  const url = `https://127.0.0.1:${port}`
  const start = (): Promise<RunningProcess> =>
    startProcess({
      name: `kube-apiserver ${index}`,
      command: programs['kube-apiserver'],
      args: [...apiserverFlags(files, etcdUrl, index, port), ...extraFlags],
      env: { HOME: files.dir },
      logFile: join(files.dir, `kube-apiserver-${index}.log`),
      ready: async () => (await kubeRequest({ server: url, ca: files.ca.certPem, path: '/readyz' })).status === 200,
    })
  let running = await start()
  return {
    url,
    port,
    get pid() {
      return running.pid
    },
    async kill(signal = 'SIGKILL') {
      running.signal(signal)
      if (signal !== 'SIGSTOP' && signal !== 'SIGCONT') await running.exited
    },
    async restart() {
      await running.stop(0)
      running = await start()
    },
    log: () => running.log(),
  }
}

export function apiserverFlags(files: ClusterFiles, etcdUrl: string, index: number, port: number): string[] {
  const certDir = join(files.dir, `kube-apiserver-${index}`)
  mkdirSync(certDir, { recursive: true })
  return [
    `--etcd-servers=${etcdUrl}`,
    `--cert-dir=${certDir}`,
    `--secure-port=${port}`,
    '--bind-address=127.0.0.1',
    // Never dialled. Without it kube-apiserver looks for a default route, and a machine may have none.
    '--advertise-address=192.0.2.1',
    '--authorization-mode=RBAC',
    '--allow-privileged=true',
    '--service-cluster-ip-range=10.0.0.0/24',
    '--service-account-issuer=https://kubernetes.default.svc',
    `--service-account-key-file=${files.serviceAccountKey}`,
    `--service-account-signing-key-file=${files.serviceAccountKey}`,
    `--client-ca-file=${files.clientCAFile}`,
    `--tls-cert-file=${files.serving.cert}`,
    `--tls-private-key-file=${files.serving.key}`,
    `--token-auth-file=${files.tokens}`,
    // kwok's nodes have a host name too, which nothing resolves.
    '--kubelet-preferred-address-types=InternalIP',
  ]
}
