// The harness itself: real clusters start, work, stay apart, and leave nothing behind.

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { appendFileSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { pathToFileURL } from 'node:url'
import { openHttp2, openRaw, requestHttp2 } from '../harness/clients/raw-clients.ts'
import { startCluster, type TestCluster } from '../harness/clusters/cluster.ts'
import { writeKubeconfig } from '../harness/clusters/kubeconfig.ts'
import { type KubectlResult, SPDY, startKubectl } from '../harness/kubectl/kubectl.ts'
import { PATIENT } from '../harness/patience.ts'
import { guarded } from '../harness/process.ts'
import { nameProxyUrl } from '../harness/upstreams/name-proxy.ts'
import { waitFor } from '../harness/wait.ts'

describe('real clusters', () => {
  let east: TestCluster
  let west: TestCluster
  let pod = ''

  before(async () => {
    const tokens = [{ token: 'east-token', user: 'erin, the operator', uid: '42', groups: ['devs', 'ops'] }]
    const everything = { apiservers: 2, controllerManager: true, scheduler: true, kwok: true, kubelet: true } as const
    const started = await Promise.allSettled([
      startCluster({ name: 'east', ...everything, nodes: 2, tokens }),
      startCluster({ name: 'west' }),
    ])
    for (const result of started) if (result.status === 'rejected') throw result.reason
    ;[east, west] = started.map((result) => result.status === 'fulfilled' && result.value) as [TestCluster, TestCluster]
  }, PATIENT)

  after(async () => {
    await Promise.all([east?.stop(), west?.stop()])
  })

  test('nodes are Ready, and a Deployment gets Ready pods through scheduler and kwok', PATIENT, async () => {
    const nodes = await succeeds(east.kubectl(['get', 'nodes', '--no-headers']))
    assert.deepEqual(
      [...nodes.matchAll(/^(node-\d) +Ready/gm)].map((match) => match[1]),
      ['node-0', 'node-1'],
    )
    await succeeds(east.kubectl(['create', 'deployment', 'web', '--image=web', '--replicas=3']))
    assert.match(await succeeds(east.kubectl(['rollout', 'status', 'deployment/web'])), /successfully rolled out/)
    pod = await succeeds(east.kubectl(['get', 'pods', '-o', 'jsonpath={.items[0].metadata.name}']))
  })

  test('two apiservers are one cluster', PATIENT, async () => {
    for (const { url } of east.apiservers) {
      const kubeconfig = east.kubeconfigFor(east.admin, url)
      assert.match(await succeeds(east.kubectl(['get', 'deployment', 'web'], { kubeconfig })), /3\/3/)
    }
  })

  test('x509, static tokens and service account tokens sign in, on both apiservers', PATIENT, async () => {
    const serviceAccount = (await succeeds(east.kubectl(['create', 'token', 'default']))).trim()
    const cert = east.clientCertificate('jürgen/ö', ['team a', 'team b'])
    for (const { url } of east.apiservers) {
      const whoami = async (user: Parameters<TestCluster['kubeconfigFor']>[0]): Promise<unknown> => {
        const kubeconfig = east.kubeconfigFor(user, url)
        const { userInfo } = JSON.parse(
          await succeeds(east.kubectl(['auth', 'whoami', '-o', 'json'], { kubeconfig })),
        ).status
        return [userInfo.username, userInfo.groups]
      }
      assert.deepEqual(await whoami({ cert }), ['jürgen/ö', ['team a', 'team b', 'system:authenticated']])
      const erin = ['erin, the operator', ['devs', 'ops', 'system:authenticated']]
      assert.deepEqual(await whoami({ token: 'east-token' }), erin)
      const groups = ['system:serviceaccounts', 'system:serviceaccounts:default', 'system:authenticated']
      assert.deepEqual(await whoami({ token: serviceAccount }), ['system:serviceaccount:default:default', groups])
    }
  })

  test("the gateway's user may impersonate and review, and nothing else", PATIENT, async () => {
    const { cert, token } = east.gatewayUser
    const path = '/api/v1/namespaces/default/pods'
    const headers = { 'impersonate-user': 'admin', 'impersonate-group': 'system:masters', 'impersonate-uid': 'u1' }
    const extra = { 'impersonate-extra-example.com%2fteam': 'blue' }
    const review = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenReview', spec: { token: 'east-token' } }
    const tokenReviews = '/apis/authentication.k8s.io/v1/tokenreviews'
    for (const { url: server } of east.apiservers) {
      for (const user of [{ cert }, { token }]) {
        assert.equal((await east.request(path, { server, user })).status, 403)
        assert.equal((await east.request(path, { server, user, headers: { ...headers, ...extra } })).status, 200)
        const reviewed = await east.request(tokenReviews, { server, user, method: 'POST', body: review })
        assert.equal(reviewed.json().status.user.username, 'erin, the operator')
      }
    }
  })

  for (const [protocol, env] of [
    ['WebSocket', {}],
    ['SPDY', SPDY],
  ] as const) {
    test(`exec, attach, logs, port-forward and cp over ${protocol}`, PATIENT, async () => {
      const kubeconfig = east.adminKubeconfig
      const { logFile, workDir } = kubeletOf(east)
      const run = (args: string[], stdin?: string): Promise<KubectlResult> =>
        east.kubectl(args, { env, ...(stdin !== undefined && { stdin }) })

      const fed = await run(['exec', '-i', pod, '--', 'sh', '-c', 'cat; echo bad >&2; exit 4'], 'fed by stdin\n')
      assert.deepEqual([fed.code, fed.stdout], [4, 'fed by stdin\n'])
      assert.match(fed.stderr, /^bad\n/)

      const attached = await startKubectl(['attach', '-i', pod], { kubeconfig, env })
      attached.write('hello\n')
      await attached.output(/echo hello/)
      attached.endStdin()
      assert.equal((await attached.done).code, 0)

      const logs = await startKubectl(['logs', '-f', pod], { kubeconfig, env })
      appendFileSync(logFile, `first ${protocol}\n`)
      await logs.output(new RegExp(`first ${protocol}`))
      appendFileSync(logFile, `second ${protocol}\n`)
      await logs.output(new RegExp(`second ${protocol}`))
      await logs.stop()

      const forward = await startKubectl(['port-forward', pod, ':80'], { kubeconfig, env })
      const [, port] = await forward.output(/127\.0\.0\.1:(\d+) -> 80/)
      assert.equal(await echo(Number(port), 'through the port'), 'through the port')
      await forward.stop()

      const bytes = randomBytes(3_000_000)
      const local = join(east.dir, `up-${protocol}`)
      writeFileSync(local, bytes)
      await succeeds(run(['cp', local, `${pod}:${workDir}/${protocol}`]))
      assert.ok(bytes.equals(readFileSync(join(workDir, protocol))), 'copied to the pod')
      await succeeds(run(['cp', `${pod}:${workDir}/${protocol}`, `${local}-back`]))
      assert.ok(bytes.equals(readFileSync(`${local}-back`)), 'copied back')
    })
  }

  test(
    'a kubeconfig with a host name that nothing resolves leads here through the stand-in for DNS',
    PATIENT,
    async () => {
      const [apiserver] = east.apiservers
      const server = `https://kubernetes.default.svc:${apiserver?.port}`
      const common = { ca: east.ca.certPem, user: east.admin, proxyUrl: await nameProxyUrl() }
      const kubeconfig = writeKubeconfig(east.newKubeconfigPath(), { ...common, server })
      for (const env of [{}, SPDY]) {
        const result = await east.kubectl(['exec', '-i', pod, '--', 'cat'], { kubeconfig, env, stdin: 'by name' })
        assert.deepEqual([result.code, result.stdout], [0, 'by name'])
      }
    },
  )

  test('raw clients: bytes over TLS, and HTTP/2 with a client certificate', PATIENT, async () => {
    const port = east.apiservers[0]?.port ?? 0
    const { cert } = east.admin
    const raw = await openRaw({ port })
    raw.send('GET /version HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n')
    await raw.closed
    assert.match(raw.text(), /^HTTP\/1\.1 200 OK\r\n/)
    const path = '/api/v1/namespaces/default'
    const session = await openHttp2({ port, serverName: 'localhost', ca: east.ca.certPem, cert })
    assert.equal((await requestHttp2(session, { ':path': path })).status, 200)
    session.close()
    const anonymous = await openHttp2({ port })
    assert.equal((await requestHttp2(anonymous, { ':path': path })).status, 403)
    anonymous.close()
    const refused = openHttp2({ port, serverName: 'localhost', ca: west.ca.certPem })
    await assert.rejects(refused, { code: 'UNABLE_TO_VERIFY_LEAF_SIGNATURE' })
  })

  test('clusters are separate: objects, certificates, tokens', PATIENT, async () => {
    assert.equal((await west.request('/apis/apps/v1/namespaces/default/deployments/web')).status, 404)
    assert.equal((await west.request('/api', { user: east.admin })).status, 401)
    assert.equal((await west.request('/api', { user: { token: 'east-token' } })).status, 401)
  })

  test(
    'an apiserver that was killed comes back on its port with what the other one wrote meanwhile',
    PATIENT,
    async () => {
      const [survivor, victim] = east.apiservers
      assert.ok(survivor !== undefined && victim !== undefined)
      const before = victim.pid
      await victim.kill()
      await assert.rejects(east.request('/readyz', { server: victim.url }), { code: 'ECONNREFUSED' })
      await succeeds(east.kubectl(['create', 'configmap', 'meanwhile'], { kubeconfig: east.kubeconfigFor(east.admin) }))
      await victim.restart()
      assert.notEqual(victim.pid, before)
      const path = '/api/v1/namespaces/default/configmaps/meanwhile'
      assert.equal((await east.request(path, { server: victim.url })).status, 200)
    },
  )

  test('stop ends every process, those in containers too, and removes the folder', PATIENT, async () => {
    const pidFile = join(kubeletOf(east).workDir, 'pid')
    const command = ['exec', pod, '--', 'sh', '-c', `echo $$ > ${pidFile}; exec sleep 600`]
    const sleeper = await startKubectl(command, { kubeconfig: east.adminKubeconfig })
    const inContainer = await waitFor(
      'the command to run',
      () => existsSync(pidFile) && (Number(readFileSync(pidFile)) || false),
    )
    const pids = [...east.pids(), ...west.pids(), inContainer]
    assert.equal(pids.length, 10)
    for (const pid of pids) assert.ok(isAlive(pid), `process ${pid} runs`)
    await Promise.all([east.stop(), west.stop()])
    await sleeper.stop()
    await waitFor('the command in the container to end', () => !isAlive(inContainer))
    assert.deepEqual(pids.filter(isAlive), [])
    for (const { dir } of [east, west]) assert.equal(existsSync(dir), false)
  })
})

describe('processes of a test process', () => {
  const endings: Record<string, string> = {
    throws: 'throw new Error("a bug in a test")',
    exits: 'process.exit(3)',
    'is terminated': 'process.kill(process.pid, "SIGTERM")',
    'is interrupted': 'process.kill(process.pid, "SIGINT")',
    'is killed': 'process.kill(process.pid, "SIGKILL")',
  }
  const guardedByKernel = guarded('sleep', [])[0] !== 'sleep'

  for (const [ending, code] of Object.entries(endings)) {
    const skip = ending === 'is killed' && !guardedByKernel && 'needs setpriv'
    test(`end with it when it ${ending}`, { skip }, async () => {
      const dir = mkdtempSync(join(tmpdir(), 'portcullis-crash-'))
      const script = join(dir, 'crash.ts')
      const harness = pathToFileURL(join(import.meta.dirname, '../harness/process.ts')).href
      writeFileSync(
        script,
        `import { startProcess } from ${JSON.stringify(harness)}
        const options = { name: 'sleep', command: 'sleep', args: ['600'], logFile: ${JSON.stringify(join(dir, 'log'))} }
        const child = await startProcess({ ...options, ready: () => true })
        process.stdout.write(String(child.pid) + '\\n')
        setTimeout(() => { ${code} }, 0)`,
      )
      const child = spawn(process.execPath, [script], { stdio: ['ignore', 'pipe', 'ignore'] })
      let output = ''
      child.stdout.on('data', (text: Buffer) => {
        output += text.toString()
      })
      await new Promise((resolve) => child.once('exit', resolve))
      const pid = Number(output)
      assert.ok(pid > 0, `the script has started a process: ${output}`)
      await waitFor(`process ${pid} to end`, () => !isAlive(pid))
      rmSync(dir, { recursive: true })
    })
  }
})

/** What kubectl printed; throws when it failed. */
async function succeeds(running: Promise<KubectlResult>): Promise<string> {
  const result = await running
  assert.equal(result.code, 0, `${result.stdout}${result.stderr}`)
  return result.stdout
}

function kubeletOf(cluster: TestCluster): NonNullable<TestCluster['kubelet']> {
  assert.ok(cluster.kubelet !== undefined, 'the cluster has a kubelet')
  return cluster.kubelet
}

/** Sends text, ends its side, and resolves with all that came back. */
function echo(port: number, text: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect({ port, host: '127.0.0.1' }, () => socket.end(text))
    let received = ''
    socket.on('data', (chunk: Buffer) => {
      received += chunk.toString()
    })
    socket.on('error', reject)
    socket.on('end', () => resolve(received))
  })
}

/** Zombies count as ended: the process that adopted them collects them when it likes. */
function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
  } catch {
    return false
  }
  try {
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'))
  } catch {
    return !existsSync('/proc/self')
  }
}
