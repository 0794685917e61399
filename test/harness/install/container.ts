// A container of a Pod as a process of this machine: exactly its arguments, environment, volumes and user, in a root of its own that
// nothing can be written to. What the kubelet would do; the network is that of this machine.

import { chmodSync, chownSync, mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import process from 'node:process'
import type { TestCluster } from '../clusters/cluster.ts'
import { type RunningProcess, startProcess } from '../process.ts'
import { MAIN } from '../program.ts'
import { waitFor } from '../wait.ts'
import type { KubeObject } from './helm.ts'

export interface ContainerOptions {
  readonly cluster: TestCluster
  /** As kube-apiserver has it, defaults and projected volumes included. */
  readonly pod: KubeObject
  /** Names that DNS of a cluster would resolve; all are this machine. */
  readonly hosts?: readonly string[]
  /** An address of this machine, in place of all its addresses: several pods with the same ports. */
  readonly podIp?: string
  /** Folders of volumes that are more than one start's: claim -> folder. */
  readonly claims?: Readonly<Record<string, string>>
  /** Default: until its readiness probe, or, without one, until it ends. */
  readonly ready?: () => boolean | Promise<boolean>
}

export interface TestContainer {
  readonly process: RunningProcess
  /** On this machine: the folder of a volume of the pod. */
  volume(name: string): string
  /** Ends it and removes its volumes, but for claims. */
  stop(): Promise<number | NodeJS.Signals>
}

const ROOT = resolve(import.meta.dirname, '../../..')
/** Only root can be another user; without root, the user of the container is root of a namespace. */
const IS_ROOT = process.getuid?.() === 0
/** What an image has, as far as Node needs it. */
const IMAGE = ['/usr', '/lib', '/lib64', '/bin', '/sbin', '/dev', '/proc']
const HOST_FILES = ['/etc/ssl', '/etc/passwd', '/etc/nsswitch.conf', '/etc/localtime']

/** Starts the pod's only container with the sources in place of the image, and waits until it is ready. */
export async function startContainer(options: ContainerOptions): Promise<TestContainer> {
  const { cluster, pod, hosts = [] } = options
  const [container] = pod['spec'].containers
  const dir = mkdtempSync(join(tmpdir(), 'portcullis-container-'))
  chmodSync(dir, 0o755)
  const folders = new Map<string, string>()
  for (const volume of pod['spec'].volumes ?? []) folders.set(volume.name, await makeVolume(options, dir, volume))
  const mounts: string[] = (container.volumeMounts ?? []).flatMap((mount: KubeObject) => {
    if (mount['subPath'] !== undefined) throw new Error('subPath is not understood here')
    return [folders.get(mount['name']) ?? '', String(mount['mountPath']), mount['readOnly'] === true ? 'ro' : 'rw']
  })
  writeFileSync(join(dir, 'hosts'), ['localhost', ...hosts].map((name) => `127.0.0.1 ${name}\n`).join(''))
  writeFileSync(join(dir, 'run.sh'), SCRIPT)
  const environment = (container.env ?? []).map((entry: KubeObject) => `${entry['name']}=${variableOf(entry, pod)}`)
  const { port } = new URL(cluster.apiservers[0]?.url ?? '')
  const variables = [...environment, 'KUBERNETES_SERVICE_HOST=127.0.0.1', `KUBERNETES_SERVICE_PORT=${port}`, 'HOME=/']
  const user = pod['spec'].securityContext
  const ids = IS_ROOT ? [`--reuid=${user.runAsUser}`, `--regid=${user.runAsGroup}`, '--clear-groups'] : []
  const { podIp = '127.0.0.1' } = options
  const args: string[] = container.args.map((arg: string) =>
    options.podIp === undefined ? arg : arg.replace(/=(0\.0\.0\.0|127\.0\.0\.1):/, `=${podIp}:`),
  )
  const command = ['/usr/bin/env', '-i', ...variables, process.execPath, MAIN, ...args]
  const probe = container.readinessProbe?.httpGet
  const running = await startProcess({
    name: `container ${container.name}`,
    command: 'unshare',
    args: [
      ...(IS_ROOT ? ['--mount'] : ['--user', '--map-root-user', '--mount']),
      'sh',
      join(dir, 'run.sh'),
      dir,
      String(mounts.length / 3),
      ...mounts,
      'setpriv',
      '--pdeathsig=KILL',
      '--no-new-privs',
      ...ids,
      '--',
      ...command,
    ],
    logFile: join(dir, 'log'),
    env: { PORTCULLIS_BINDS: [ROOT, realpathSync(join(ROOT, 'node_modules')), dirname(process.execPath)].join('\n') },
    ready:
      options.ready ??
      (async () => {
        const named = container.ports.find((one: KubeObject) => one['name'] === probe.port)
        return (await fetch(`http://${podIp}:${named.containerPort}${probe.path}`)).ok
      }),
  }).catch((error: unknown) => {
    rmSync(dir, { recursive: true, force: true })
    throw error
  })
  return {
    process: running,
    volume: (name) => folders.get(name) ?? '',
    async stop() {
      const result = await running.stop((pod['spec'].terminationGracePeriodSeconds ?? 30) * 1000)
      rmSync(dir, { recursive: true, force: true })
      return result
    },
  }
}

/** Runs a pod's only container until it ends; its exit code, and what it printed. */
export async function runContainer(options: ContainerOptions): Promise<{ code: number | NodeJS.Signals; log: string }> {
  const started = await startContainer({ ...options, ready: () => true })
  const code = await started.process.exited
  const log = started.process.log()
  await started.stop()
  return { code, log }
}

/** A tmpfs as root, with what an image has; then it is read-only. Arguments: folder, count of mounts, (from, to, ro|rw)..., command. */
const SCRIPT = `set -e
dir=$1 count=$2; shift 2
root=$dir/root; mkdir "$root"; mount -t tmpfs -o mode=755 tmpfs "$root"
for path in ${IMAGE.join(' ')}; do
  if [ -L $path ]; then cp -P $path "$root$path"
  elif [ -d $path ]; then mkdir "$root$path"; mount --rbind $path "$root$path"; fi
done
mkdir "$root/etc"
for path in ${HOST_FILES.join(' ')}; do [ ! -e $path ] || cp -RL $path "$root$path" 2>/dev/null || true; done
cp "$dir/hosts" "$root/etc/hosts"
printf '%s\\n' "$PORTCULLIS_BINDS" | while IFS= read -r path; do
  mkdir -p "$root$path"; mount --rbind "$path" "$root$path"
done
while [ $count -gt 0 ]; do
  mkdir -p "$root$2"; mount --bind "$1" "$root$2"
  shift 3; count=$((count - 1))
done
mount -o remount,ro "$root"
exec chroot "$root" "$@"
`

/** The value of a variable; what the downward API gives. */
function variableOf({ name, value, valueFrom }: KubeObject, pod: KubeObject): string {
  if (value !== undefined) return value
  const field = valueFrom?.fieldRef?.fieldPath
  if (field === 'metadata.name') return pod['metadata'].name
  const resource: string = valueFrom?.resourceFieldRef?.resource ?? ''
  const [kind = '', of = ''] = resource.split('.')
  const quantity: unknown = pod['spec'].containers[0].resources?.[kind]?.[of]
  if (of !== 'cpu' || quantity === undefined) throw new Error(`variable ${name}: ${JSON.stringify(valueFrom)}`)
  const cpus = String(quantity).endsWith('m') ? Number.parseInt(String(quantity), 10) / 1000 : Number(quantity)
  return String(Math.ceil(cpus)) // with divisor 1
}

async function makeVolume(
  { cluster, pod, claims }: ContainerOptions,
  dir: string,
  volume: KubeObject,
): Promise<string> {
  const namespace: string = pod['metadata'].namespace
  const claim: string | undefined = volume['persistentVolumeClaim']?.claimName
  const folder = claim === undefined ? join(dir, volume['name']) : (claims?.[claim] ?? '')
  if (folder === '') throw new Error(`no folder for claim ${claim}`)
  mkdirSync(folder, { recursive: true })
  if (claim !== undefined || volume['emptyDir'] !== undefined) {
    own(folder, pod)
    return folder
  }
  const get = async (kind: string, name: string): Promise<KubeObject> =>
    (await cluster.request(`/api/v1/namespaces/${namespace}/${kind}/${name}`)).json()
  const decode = (data: Record<string, string> = {}): [string, string][] =>
    Object.entries(data).map(([key, text]) => [key, Buffer.from(text, 'base64').toString()])
  const { secret, configMap, projected } = Object(volume)
  const files: [string, string][] = []
  if (secret !== undefined) files.push(...decode((await get('secrets', secret.secretName))['data']))
  if (configMap !== undefined) files.push(...Object.entries<string>((await get('configmaps', configMap.name))['data']))
  for (const source of projected?.sources ?? []) files.push(...(await projectedFiles(cluster, pod, source, get)))
  writeAsKubelet(folder, files, Number(secret?.defaultMode ?? configMap?.defaultMode ?? projected?.defaultMode), pod)
  return folder
}

/** What ServiceAccount admission adds to a pod: a token, the CA of the cluster, the namespace. */
async function projectedFiles(
  cluster: TestCluster,
  pod: KubeObject,
  { serviceAccountToken, configMap, downwardAPI }: KubeObject,
  get: (kind: string, name: string) => Promise<KubeObject>,
): Promise<[string, string][]> {
  const { namespace } = pod['metadata']
  if (serviceAccountToken !== undefined) {
    const path = `/api/v1/namespaces/${namespace}/serviceaccounts/${pod['spec'].serviceAccountName}/token`
    const body = { spec: { expirationSeconds: serviceAccountToken.expirationSeconds } }
    const made = await cluster.request(path, { method: 'POST', body })
    return [[serviceAccountToken.path, made.json().status.token]]
  }
  if (configMap !== undefined) {
    // A controller writes it into each namespace.
    const data = await waitFor(
      `ConfigMap ${configMap.name}`,
      async () => (await get('configmaps', configMap.name))['data'],
    )
    return configMap.items.map(({ key, path }: KubeObject) => [path, data[key]])
  }
  return downwardAPI.items.map(({ path }: KubeObject) => [path, namespace])
}

/** A folder of links, which can be exchanged at once. */
function writeAsKubelet(folder: string, files: readonly [string, string][], mode: number, pod: KubeObject): void {
  mkdirSync(join(folder, '..1'))
  symlinkSync('..1', join(folder, '..data'))
  for (const [name, text] of files) {
    writeFileSync(join(folder, '..1', name), text)
    chmodSync(join(folder, '..1', name), mode)
    if (IS_ROOT) chownSync(join(folder, '..1', name), 0, pod['spec'].securityContext.fsGroup)
    symlinkSync(`..data/${name}`, join(folder, name))
  }
}

/** As SetVolumeOwnership of the kubelet leaves the root of a volume: the group's, and so is what is made in it. */
function own(folder: string, pod: KubeObject): void {
  if (IS_ROOT) chownSync(folder, 0, pod['spec'].securityContext.fsGroup)
  chmodSync(folder, 0o2775)
}
