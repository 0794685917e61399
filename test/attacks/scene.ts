// What attacks are run against: a gateway process with its own API server, the ports of control plane and webhooks open, in front of one
// cluster with the settings that the documentation shows; and the credentials of another user.

import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import process from 'node:process'
import { clientProgram } from '../../bench/load/client-program.ts'
import type { UpstreamCluster } from '../../src/gateway/api/upstream-cluster/upstream-cluster.ts'
import { VIEWER_GROUP } from '../../src/kube/api/own-names.ts'
import { issueControlCertificate } from '../../src/pki/io/control-pki.ts'
import { createCA, issueCertificate, type KeyPair } from '../../src/pki/io/pki.ts'
import { bundledMain } from '../harness/bundled-program.ts'
import { EMBEDDED_FLAGS, type EmbeddedGateway, startEmbedded, UC_PATH } from '../harness/gateways/embedded.ts'
import { ALLOW_ALL, base64, clientPair } from '../harness/objects/objects.ts'
import { writeKeyPair } from '../harness/pki.ts'
import { freePorts } from '../harness/ports.ts'
import { endWithThisProcess, guarded } from '../harness/process.ts'
import { waitFor } from '../harness/wait.ts'
import type { Who } from './attack.ts'
import type { TargetMessage } from './worker-messages.ts'

export const HOST = 'prod.example.com'
/** As users start it: with the flags of Node that it has there. */
const PROGRAM = join(import.meta.dirname, '../../bin/portcullis')
const PROXIED_HOST = '127.0.0.2'
const BALANCER = '127.0.0.3'
const SERVED = 'proxy.kubegateway.io/v1alpha1'

/** As bin/portcullis starts it. */
const NODE_FLAGS = ['--max-semi-space-size=16', '--v8-pool-size=1']

/** The bundle, with the flags of Node that bin/portcullis has: a gateway whose memory is not the compiler's, and that starts sooner. */
export async function bundledCommand(): Promise<readonly string[]> {
  return [process.execPath, ...NODE_FLAGS, await bundledMain()]
}

export interface SceneOptions {
  /** The threads of the gateway. */
  readonly threads: number
  /** The gateway's command line without arguments. Default: as users start it from the sources. */
  readonly program?: readonly string[]
  /** Put in front of the gateway's and the upstream's command line, e.g. `taskset -c 0`. Default: nothing. */
  readonly gatewayPrefix?: readonly string[]
  readonly upstreamPrefix?: readonly string[]
  /** Further flags of `serve`. */
  readonly flags?: readonly string[]
}

export interface Scene {
  readonly embedded: EmbeddedGateway
  /** A client that attacks nothing. */
  readonly bystander: KeyPair
  /** Files of the same, for other programs. */
  readonly bystanderFiles: { readonly cert: string; readonly key: string }
  /** An attacker that has done nothing yet: another address, and unless told the user, another one, each time. */
  target(who: Who, user?: string): TargetMessage
  /** The process ID of the upstream. */
  readonly upstreamPid: number
  stop(): Promise<void>
}

export async function startScene(options: SceneOptions): Promise<Scene> {
  const dir = mkdtempSync(join(tmpdir(), 'portcullis-attacks-'))
  const ca = createCA({ commonName: 'attacks CA' })
  const names = { dnsNames: ['localhost'], ipAddresses: ['127.0.0.1'] }
  const serving = writeKeyPair(
    dir,
    'upstream',
    issueCertificate(ca, { commonName: 'upstream', usage: 'server', ...names }),
  )
  const upstream = await startUpstream(serving, options.upstreamPrefix ?? [])
  const [command = PROGRAM, ...rest] = [...(options.gatewayPrefix ?? []), ...(options.program ?? [PROGRAM])]
  const embedded = await startEmbedded({
    source: [...EMBEDDED_FLAGS, '--protection-listen=127.0.0.1:WEBHOOK'],
    listen: [`${PROXIED_HOST}:PORT/proxy-protocol`],
    args: [`--proxy-protocol-from=${BALANCER}/32`, `--threads=${options.threads}`, ...(options.flags ?? [])],
    program: [command, ...rest],
  })
  await createObjects(embedded, upstream.port, ca)
  const pki = join(embedded.dataDir, 'control/pki')
  const control = {
    roleless: issueControlCertificate(pki, { user: 'nobody', groups: [] }),
    viewer: issueControlCertificate(pki, { user: 'viewer', groups: [VIEWER_GROUP] }),
    editor: issueControlCertificate(pki, { user: 'editor', groups: ['portcullis:admins'] }),
  }
  const bystander = clientPair(ca, 'bystander', ['dev'])
  const { gateway } = embedded
  let attackers = 0
  return {
    embedded,
    bystander,
    bystanderFiles: writeKeyPair(dir, 'bystander', bystander),
    upstreamPid: upstream.pid,
    target: (who, user) => ({
      host: HOST,
      port: gateway.port,
      controlPort: gateway.controlPort,
      webhookPort: gateway.webhookPort,
      adminPort: gateway.adminPort,
      address: `127.0.${1 + Math.floor(++attackers / 250)}.${1 + (attackers % 250)}`,
      network: 64 + (attackers % 180),
      proxied: { host: PROXIED_HOST, balancer: BALANCER },
      who,
      certificate: who === 'known' ? clientPair(ca, user ?? `attacker-${attackers}`, ['dev']) : undefined,
      control,
      secrets: [base64(GATEWAY_TOKEN)],
    }),
    async stop() {
      await embedded.stop()
      upstream.stop()
      rmSync(dir, { recursive: true, force: true })
    },
  }
}

const GATEWAY_TOKEN = 'gateway-token-that-nobody-sees'

async function createObjects(embedded: EmbeddedGateway, upstreamPort: number, ca: KeyPair): Promise<void> {
  const cluster: UpstreamCluster = {
    apiVersion: SERVED,
    kind: 'UpstreamCluster',
    metadata: { name: HOST },
    spec: {
      servers: [{ endpoint: `https://127.0.0.1:${upstreamPort}` }],
      clientConfig: { bearerToken: base64(GATEWAY_TOKEN), caData: base64(ca.certPem) },
      secureServing: { clientCAData: base64(ca.certPem) },
      dispatchPolicies: [ALLOW_ALL],
      podProtection: {},
    },
  }
  const protector = {
    apiVersion: 'podseidon.kubewharf.io/v1alpha1',
    kind: 'PodProtector',
    metadata: { name: 'web', namespace: 'default' },
    spec: { minAvailable: 5, minReadySeconds: 0, selector: { matchLabels: { app: 'web' } } },
  }
  for (const [path, body] of [
    [UC_PATH, cluster],
    ['/apis/podseidon.kubewharf.io/v1alpha1/namespaces/default/podprotectors', protector],
  ] as const) {
    const { code, text } = await embedded.admin.post(path, body)
    if (code !== 201) throw new Error(`${path}: ${code} ${text}`)
  }
}

/** The load client's upstream: it is faster than what is tested. */
async function startUpstream(
  files: { readonly cert: string; readonly key: string },
  prefix: readonly string[],
): Promise<{ port: number; pid: number; stop(): void }> {
  const [port = 0, admin = 0] = await freePorts(2)
  const flags = [`-port=${port}`, `-admin=${admin}`, `-cert=${files.cert}`, `-key=${files.key}`, '-kubernetes']
  const [first = '', ...rest] = [...prefix, clientProgram(), 'upstream', ...flags]
  const [command, args] = guarded(first, rest)
  // It ends with its standard input.
  const child = spawn(command, args, { stdio: ['pipe', 'ignore', 'inherit'] })
  endWithThisProcess(child)
  await waitFor('the upstream', () => {
    if (child.exitCode !== null) throw new Error(`the upstream ended with ${child.exitCode}`)
    return listens(port)
  })
  return { port, pid: child.pid ?? 0, stop: () => void child.kill('SIGKILL') }
}

function listens(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1')
    socket.on('connect', () => resolve(true)).on('error', () => resolve(false))
    socket.on('connect', () => socket.destroy())
  })
}
