// Recordings of what kubectl does, over WebSocket and SPDY, on a real kube-apiserver and a kubelet's own streaming code.

import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import type { UpstreamClusterSpec } from '../../src/gateway/api/upstream-cluster/upstream-cluster.ts'
import { binaries } from '../harness/binaries.ts'
import { startCluster, type TestCluster } from '../harness/clusters/cluster.ts'
import { kubeconfigThrough, upstreamClusterFor } from '../harness/clusters/upstream-cluster.ts'
import { startGateway, type TestGateway } from '../harness/gateways/gateway.ts'
import { type KubectlResult, SPDY, startKubectl } from '../harness/kubectl/kubectl.ts'
import { S3_CREDENTIALS, startS3Server } from '../harness/servers/s3-server.ts'
import { type Played, type PlayOptions, playRecording } from '../harness/sessions/play.ts'
import { waitFor } from '../harness/wait.ts'

const POD = 'target'
/** Gives a program a terminal. */
const SCRIPT = '/usr/bin/script'
const folder = mkdtempSync(join(tmpdir(), 'sessions-'))
const keyFile = join(folder, 'sessions.key')
writeFileSync(keyFile, `${randomBytes(32).toString('base64')}\n`)
const auditLog = join(folder, 'audit.log')
const dir = join(folder, 'recordings')

let cluster: TestCluster
let gateway: TestGateway
let kubeconfig = ''
const known = new Set<string>()

function specOf(sessions: NonNullable<UpstreamClusterSpec['audit']>['sessions']): Partial<UpstreamClusterSpec> {
  return { healthCheck: { intervalSeconds: 1 }, audit: { ...(sessions !== undefined && { sessions }) } }
}

async function start(
  sessions: NonNullable<UpstreamClusterSpec['audit']>['sessions'],
  args: readonly string[] = [],
): Promise<void> {
  gateway = await startGateway({
    clusters: [upstreamClusterFor(cluster, { spec: specOf(sessions) })],
    args: [
      `--session-recording-dir=${dir}`,
      `--session-recording-key-file=${keyFile}`,
      `--audit-log-path=${auditLog}`,
      ...args,
    ],
  })
  kubeconfig = await kubeconfigThrough(gateway, cluster, cluster.admin)
}

before(async () => {
  cluster = await startCluster({ nodes: 1, controllerManager: true, kwok: true, kubelet: true })
  const container = { name: 'c', image: 'c:1', ports: [{ containerPort: 80 }] }
  const pod = { apiVersion: 'v1', kind: 'Pod', metadata: { name: POD } }
  await cluster.apply(JSON.stringify({ ...pod, spec: { nodeName: 'node-0', containers: [container] } }))
  const ready = await cluster.kubectl(['wait', `pod/${POD}`, '--for=condition=Ready'])
  assert.equal(ready.code, 0, ready.stderr)
  await start({ record: 'InputAndOutput', whenFull: 'Block' })
})
after(async () => {
  await gateway?.stop()
  await cluster?.stop()
  rmSync(folder, { recursive: true })
})

const played = (file: string, how: Omit<PlayOptions, 'keyFile'> = { text: true }): Promise<Played> =>
  playRecording(file, { keyFile, ...how })

/** The file that is new since the last call. */
async function recorded(suffix = '.session'): Promise<string> {
  const name = await waitFor('a recording', () =>
    readdirSync(dir).find((one) => one.endsWith(suffix) && !known.has(one)),
  )
  known.add(name)
  return join(dir, name)
}

/** Annotations of the end of the session with this recording. */
async function told(file: string): Promise<Readonly<Record<string, string>>> {
  return await waitFor('the end in the audit log', () => {
    const lines = readFileSync(auditLog, 'utf8').split('\n').slice(0, -1)
    const events = lines.map((line) => JSON.parse(line))
    return events.find(({ annotations }) => file.endsWith(`/${annotations['portcullis.io/session-recording'] ?? ' '}`))
      ?.annotations
  })
}

for (const [protocol, env, name] of [
  ['WebSocket', {}, 'websocket v5.channel.k8s.io'],
  ['SPDY', SPDY, 'SPDY/3.1 v4.channel.k8s.io'],
] as const) {
  describe(protocol, () => {
    const run = (args: readonly string[], stdin?: string): Promise<KubectlResult> =>
      cluster.kubectl(args, { kubeconfig, env, ...(stdin !== undefined && { stdin }) })

    test('exec: what it printed, and how it ended', async () => {
      const { code } = await run(['exec', POD, '-c', 'c', '--', 'sh', '-c', 'echo out; echo err >&2; exit 4'])
      assert.equal(code, 4)
      const file = await recorded()
      const { code: whole, out, err } = await played(file)
      assert.equal(whole, 0, err)
      assert.deepEqual(out.trimEnd().split('\n').sort(), ['err', 'out'])
      assert.match(err, /ended: exit code 4/)
      const fields = await told(file)
      assert.equal(fields['portcullis.io/session-outcome'], 'exit code 4')
      assert.equal(fields['portcullis.io/session-protocol']?.toLowerCase(), name.toLowerCase())
      assert.equal(fields['portcullis.io/session-command'], '["sh","-c","echo out; echo err >&2; exit 4"]')
      assert.ok(Number(fields['portcullis.io/session-bytes-to-client']) > 8)
    })

    test('exec -i: what is typed and what comes back, all of it', async () => {
      const input = Array.from({ length: 20_000 }, (_, at) => `line ${at} ä漢😀\n`).join('')
      const { stdout } = await run(['exec', '-i', POD, '--', 'cat'], input)
      assert.equal(stdout, input)
      const { out, code } = await played(await recorded(), { cast: true })
      assert.equal(code, 0)
      const events = out
        .trimEnd()
        .split('\n')
        .slice(1)
        .map((line) => JSON.parse(line))
      for (const kind of ['i', 'o']) {
        assert.equal(
          events
            .filter(([, one]) => one === kind)
            .map(([, , text]) => text)
            .join(''),
          input,
        )
      }
    })

    test('exec -it on a terminal has its size', { skip: !existsSync(SCRIPT) && 'needs script(1)' }, async () => {
      const { kubectl } = await binaries()
      const command = `stty rows 33 cols 101; ${kubectl} exec -it ${POD} -- head -n 1`
      const terminal = await startKubectl(['-qec', command, '/dev/null'], { kubeconfig, env, program: SCRIPT })
      terminal.write('typed\n')
      await terminal.output(/typed/)
      assert.equal((await terminal.done).code, 0)
      const { out } = await played(await recorded(), { cast: true })
      assert.match(out, /,"r","101x33"\]/)
    })

    test('attach', async () => {
      const attached = await startKubectl(['attach', '-i', POD], { kubeconfig, env })
      await attached.output(/attached/)
      attached.write('hello\n')
      await attached.output(/echo hello/)
      attached.endStdin()
      await attached.done
      assert.equal((await played(await recorded())).out, 'attached\necho hello\n')
    })

    test('20 at once, each in a file of its own', async () => {
      const runs = Array.from({ length: 20 }, (_, at) => run(['exec', POD, '--', 'sh', '-c', `echo ${at}`]))
      for (const { code } of await Promise.all(runs)) assert.equal(code, 0)
      const texts: number[] = []
      for (const _ of runs) texts.push(Number((await played(await recorded())).out))
      assert.deepEqual(
        texts.sort((a, b) => a - b),
        Array.from(runs.keys()),
      )
    })
  })
}

test('what one cluster has recorded, another has not; a gateway that is killed leaves what was shown', async () => {
  const running = await startKubectl(['exec', POD, '--', 'sh', '-c', 'echo before; sleep 600'], { kubeconfig })
  await running.output(/before/)
  const part = await recorded('.part')
  await waitFor('it to be on disk', async () => (await played(part)).out === 'before\n')
  await gateway.stop('SIGKILL')
  assert.notEqual((await running.done).code, 0)
  const { code, out, err } = await played(part)
  assert.deepEqual([code, out], [1, 'before\n'])
  assert.match(err, /ends here/)
})

test('what kubectl has shown is in the bucket, also of a session that ends with the gateway', async (t) => {
  const server = await startS3Server()
  t.after(() => server.stop())
  server.makeBucket('audit')
  const credentialsFile = join(folder, 'credentials')
  writeFileSync(credentialsFile, S3_CREDENTIALS)
  await start({ whenFull: 'Block' }, [
    `--session-recording-s3-endpoint=${server.url}`,
    '--session-recording-s3-bucket=audit',
    '--session-recording-s3-region=eu-test-1',
    `--session-recording-s3-credentials-file=${credentialsFile}`,
  ])
  const { stdout } = await cluster.kubectl(['exec', POD, '--', 'echo', 'for the bucket'], { kubeconfig })
  assert.equal(stdout, 'for the bucket\n')
  const running = await startKubectl(['exec', POD, '--', 'sh', '-c', 'echo until the end; sleep 600'], { kubeconfig })
  await running.output(/until the end/)
  await gateway.stop()
  await running.done
  const inBucket = join(folder, 'in-bucket.session')
  const shown: string[] = []
  for (const name of server.objects('audit')) {
    writeFileSync(inBucket, server.object('audit', name))
    shown.push((await played(inBucket)).out)
  }
  for (const text of ['for the bucket\n', 'until the end\n']) assert.ok(shown.includes(text), shown.join())
  assert.deepEqual(
    readdirSync(dir).filter((name) => name.endsWith('.session')),
    [],
  )
})

test('where it must be recorded and cannot be, kubectl says why', async () => {
  gateway = await startGateway({ clusters: [upstreamClusterFor(cluster, { spec: specOf({ whenFull: 'Block' }) })] })
  kubeconfig = await kubeconfigThrough(gateway, cluster, cluster.admin)
  for (const env of [{}, SPDY]) {
    const { code, stderr } = await cluster.kubectl(['exec', POD, '--', 'echo', 'here'], { kubeconfig, env })
    assert.equal(code, 1)
    assert.match(stderr, /must be recorded \(spec\.audit\.sessions\.whenFull: Block\).*--session-recording-dir/)
  }
})
