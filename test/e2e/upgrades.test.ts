// exec, attach, port-forward, cp and logs -f through the gateway, over WebSocket and SPDY, on a kubelet's own streaming code.

import assert from 'node:assert/strict'
import { createHash, randomBytes } from 'node:crypto'
import { appendFileSync, existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { binaries } from '../harness/binaries.ts'
import { startCluster, type TestCluster } from '../harness/clusters/cluster.ts'
import { kubeconfigThrough, upstreamClusterFor } from '../harness/clusters/upstream-cluster.ts'
import { type AccessLogLine, startGateway, type TestGateway } from '../harness/gateways/gateway.ts'
import { type KubectlResult, type RunningKubectl, SPDY, startKubectl } from '../harness/kubectl/kubectl.ts'
import { waitFor } from '../harness/wait.ts'

const POD = 'target'
/** Gives a program a terminal. */
const SCRIPT = '/usr/bin/script'
const MEGABYTES_3 = 3 * 1024 * 1024
const FORWARDED_CONNECTIONS = 30
const EXECS_AT_ONCE = 20

let cluster: TestCluster
let gateway: TestGateway
let workDir = ''
let logFile = ''
/** By certificate and host name, by a ServiceAccount's token and path. */
const kubeconfigs = { certificate: '', token: '' }

before(async () => {
  const components = { controllerManager: true, kwok: true, kubelet: true }
  cluster = await startCluster({ apiservers: 2, nodes: 1, ...components })
  const spec = { healthCheck: { intervalSeconds: 1 } }
  gateway = await startGateway({ clusters: [upstreamClusterFor(cluster, { spec })] })
  assert.ok(cluster.kubelet)
  workDir = cluster.kubelet.workDir
  logFile = cluster.kubelet.logFile
  const container = { name: 'c', image: 'c:1', ports: [{ containerPort: 80 }] }
  const pod = { apiVersion: 'v1', kind: 'Pod', metadata: { name: POD } }
  await cluster.apply(JSON.stringify({ ...pod, spec: { nodeName: 'node-0', containers: [container] } }))
  await succeed(cluster.kubectl(['wait', `pod/${POD}`, '--for=condition=Ready']))
  const binding = 'create clusterrolebinding robot --clusterrole=cluster-admin --serviceaccount=default:default'
  await succeed(cluster.kubectl(binding.split(' ')))
  const token = (await succeed(cluster.kubectl(['create', 'token', 'default']))).trim()
  kubeconfigs.certificate = await kubeconfigThrough(gateway, cluster, cluster.admin)
  kubeconfigs.token = await kubeconfigThrough(gateway, cluster, { token }, { path: true })
})
after(async () => {
  await gateway?.stop()
  await cluster?.stop()
})

async function succeed(running: Promise<KubectlResult>): Promise<string> {
  const { code, stdout, stderr } = await running
  assert.equal(code, 0, stdout + stderr)
  return stdout
}

function sha256(bytes: Buffer): string {
  return createHash('sha256').update(bytes).digest('hex')
}

/** Sends bytes, ends its side, and resolves with all that came back. */
function exchange(port: number, bytes: Buffer): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const socket = connect({ port, host: '127.0.0.1' }, () => socket.end(bytes))
    const chunks: Buffer[] = []
    socket.on('data', (chunk: Buffer) => chunks.push(chunk))
    socket.on('error', reject)
    socket.on('end', () => resolve(Buffer.concat(chunks)))
  })
}

/** Zombies count as ended. */
function isAlive(pid: number): boolean {
  try {
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'))
  } catch {
    return false
  }
}

for (const [protocol, env] of [
  ['WebSocket', {}],
  ['SPDY', SPDY],
] as const) {
  for (const credential of ['certificate', 'token'] as const) {
    describe(`${protocol}, by ${credential}`, () => {
      const run = (args: readonly string[], stdin?: string | Buffer): Promise<KubectlResult> =>
        cluster.kubectl(args, { kubeconfig: kubeconfigs[credential], env, ...(stdin !== undefined && { stdin }) })
      const start = (args: readonly string[]): Promise<RunningKubectl> =>
        startKubectl(args, { kubeconfig: kubeconfigs[credential], env })
      const shell = (script: string): string[] => ['exec', POD, '--', 'sh', '-c', script]

      test('exec: stdout, stderr and exit code', async () => {
        const { code, stdout, stderr } = await run(shell('echo out; echo err >&2; exit 4'))
        assert.deepEqual([code, stdout], [4, 'out\n'])
        assert.equal(stderr, 'err\ncommand terminated with exit code 4\n')
        assert.deepEqual((await run(shell('true'))).code, 0)
      })

      test('exec -i: stdin arrives whole, and so does its end', async () => {
        const bytes = randomBytes(MEGABYTES_3)
        const counted = await run(['exec', '-i', POD, '--', 'sha256sum'], bytes)
        assert.equal(counted.stdout, `${sha256(bytes)}  -\n`, counted.stderr)
        const echoed = await run(['exec', '-i', POD, '--', 'cat'], bytes)
        assert.ok(bytes.equals(echoed.stdoutBytes), `${echoed.stdoutBytes.length} bytes came back`)
        assert.equal((await run(['exec', '-i', POD, '--', 'cat'], '')).stdout, '')
      })

      test('exec -i: a conversation, line by line', async () => {
        const running = await start(['exec', '-i', POD, '--', 'sh', '-c', 'while read l; do echo "got $l"; done'])
        for (const line of ['one', 'two', 'three']) {
          running.write(`${line}\n`)
          await running.output(new RegExp(`got ${line}\n`))
        }
        running.endStdin()
        assert.equal((await running.done).code, 0)
      })

      test('exec -it on a terminal', { skip: !existsSync(SCRIPT) && 'needs script(1)' }, async () => {
        const { kubectl } = await binaries()
        const command = `${kubectl} exec -it ${POD} -- head -n 1`
        const options = { kubeconfig: kubeconfigs[credential], env, program: SCRIPT }
        const terminal = await startKubectl(['-qec', command, '/dev/null'], options)
        terminal.write('typed\n')
        await terminal.output(/typed/)
        assert.equal((await terminal.done).code, 0)
      })

      test('attach', async () => {
        const attached = await start(['attach', '-i', POD])
        await attached.output(/attached/)
        attached.write('hello\n')
        await attached.output(/echo hello/)
        attached.endStdin()
        assert.equal((await attached.done).code, 0)
      })

      test(`port-forward: ${FORWARDED_CONNECTIONS} connections at once, and one with 3 MB`, async () => {
        const forward = await start(['port-forward', POD, ':80'])
        const [, port] = await forward.output(/127\.0\.0\.1:(\d+) -> 80/)
        const texts = Array.from({ length: FORWARDED_CONNECTIONS }, (_, i) =>
          Buffer.from(`connection ${i}`.repeat(500)),
        )
        const answers = await Promise.all(texts.map((text) => exchange(Number(port), text)))
        for (const [i, answer] of answers.entries()) assert.equal(answer.toString(), texts[i]?.toString())
        const bytes = randomBytes(MEGABYTES_3)
        assert.ok(bytes.equals(await exchange(Number(port), bytes)))
        await forward.stop()
      })

      test('cp to a pod and back', async () => {
        const bytes = randomBytes(MEGABYTES_3)
        const [local, remote, back] = ['up', 'remote', 'back'].map((name) => join(cluster.dir, `${name}-of-cp`))
        assert.ok(local !== undefined && remote !== undefined && back !== undefined)
        writeFileSync(local, bytes)
        await succeed(run(['cp', local, `${POD}:${remote}`]))
        assert.equal(sha256(readFileSync(remote)), sha256(bytes))
        await succeed(run(['cp', `${POD}:${remote}`, back]))
        assert.equal(sha256(readFileSync(back)), sha256(bytes))
        for (const file of [local, remote, back]) rmSync(file)
      })

      test('logs, and logs -f line by line', async () => {
        const lines = Array.from({ length: 5 }, (_, i) => `${protocol} ${credential} ${i}`)
        const following = await start(['logs', '-f', POD])
        for (const line of lines) {
          appendFileSync(logFile, `${line}\n`)
          await following.output(new RegExp(`${line}\n`))
        }
        await following.stop()
        assert.ok((await succeed(run(['logs', POD]))).endsWith(`${lines.join('\n')}\n`))
      })

      test(`${EXECS_AT_ONCE} execs at once`, async () => {
        const execs = Array.from({ length: EXECS_AT_ONCE }, (_, i) => run(shell(`echo ${i}; exit ${i}`)))
        for (const [i, { code, stdout }] of (await Promise.all(execs)).entries()) {
          assert.deepEqual([code, stdout], [i, `${i}\n`])
        }
      })

      test('a client that is gone ends what it has started', async () => {
        const name = `pid-of-${protocol}-${credential}`
        const pidFile = join(workDir, name)
        rmSync(pidFile, { force: true })
        const running = await start(['exec', '-i', POD, '--', 'sh', '-c', `echo $$ > ${pidFile}; exec cat`])
        const pid = await waitFor('the command to run', () => {
          const written = existsSync(pidFile) && Number(readFileSync(pidFile, 'utf8'))
          return written && isAlive(written) && written
        })
        await running.stop('SIGKILL')
        await waitFor('the command to end', () => !isAlive(pid))
        const isThis = (line: AccessLogLine): boolean => line['code'] === 101 && String(line['target']).includes(name)
        await gateway.logged(isThis)
      })

      test('what is refused is told as if asked direct', async () => {
        const rightless = { cert: cluster.clientCertificate('nobody') }
        const pairs = [
          [cluster.kubeconfigFor(rightless), await kubeconfigThrough(gateway, cluster, rightless)],
          [cluster.adminKubeconfig, kubeconfigs[credential]],
        ]
        const commands = [`exec ${POD} -- true`, 'exec missing -- true', `exec ${POD} -c missing -- true`]
        commands.push(`attach ${POD} -c missing`, `port-forward missing 80`, `exec ${POD} -- no-such-program`)
        for (const ways of pairs) {
          for (const command of commands) {
            const [direct, through] = await Promise.all(
              ways.map((kubeconfig) => cluster.kubectl(command.split(' '), { kubeconfig, env })),
            )
            if (ways[1] === kubeconfigs[credential] && command === commands[0]) continue
            assert.notEqual(direct?.code, 0)
            assert.deepEqual([through?.code, through?.stdout, through?.stderr], [direct?.code, '', direct?.stderr])
          }
        }
      })
    })
  }
}

describe('with one of two apiservers gone', () => {
  test('every exec and port-forward works at once', async () => {
    const victim = cluster.apiservers[1]
    assert.ok(victim)
    await victim.kill()
    for (const env of [{}, SPDY]) {
      const execs = Array.from({ length: 8 }, () =>
        cluster.kubectl(['exec', POD, '--', 'echo', 'here'], { kubeconfig: kubeconfigs.certificate, env }),
      )
      for (const exec of execs) assert.equal(await succeed(exec), 'here\n')
    }
    await victim.restart()
  })

  test('a running exec ends with an error when its apiserver is killed', async () => {
    const options = { kubeconfig: kubeconfigs.certificate }
    const running = await Promise.all(
      Array.from({ length: 4 }, () => startKubectl(['exec', POD, '--', 'sh', '-c', 'echo up; sleep 600'], options)),
    )
    await Promise.all(running.map((exec) => exec.output(/up/)))
    for (const apiserver of cluster.apiservers) await apiserver.kill()
    for (const exec of running) assert.notEqual((await exec.done).code, 0)
    for (const apiserver of cluster.apiservers) await apiserver.restart()
  })
})
