// The scripts of deploy/drill against a gateway that serves: backed up, lost, restored elsewhere; and a drill of the backup.

import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { request } from 'node:https'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { parse } from 'yaml'
import { createCA } from '../../src/pki/io/pki.ts'
import { binaries } from '../harness/binaries.ts'
import { ControlClient } from '../harness/clients/control-client.ts'
import type { TestControl } from '../harness/gateways/control.ts'
import { UC_PATH } from '../harness/gateways/embedded.ts'
import { LOCAL_SERVERS_FLAG } from '../harness/gateways/local-servers.ts'
import { clientPair, clusterObject } from '../harness/objects/objects.ts'
import { PATIENT } from '../harness/patience.ts'
import { freePorts } from '../harness/ports.ts'
import { type RunningProcess, startProcess } from '../harness/process.ts'
import { type StubUpstream, startStub } from '../harness/upstreams/stub-upstream.ts'
import { waitFor } from '../harness/wait.ts'

const ROOT = resolve(import.meta.dirname, '../..')
const PORTCULLIS = join(ROOT, 'bin/portcullis')
const SECRETS = '/api/v1/namespaces/default/secrets'
const dir = mkdtempSync(join(tmpdir(), 'portcullis-drill-test-'))
const clientCA = createCA({ commonName: 'clients of prod' })
const alice = clientPair(clientCA, 'alice')

interface Gateway {
  readonly process: RunningProcess
  readonly port: number
  readonly controlPort: number
}

interface Ran {
  readonly code: number
  readonly stdout: string
  readonly stderr: string
}

let kubectlFolder: string

/** With nothing of the test runner; kubectl is on PATH. */
function cleanEnv(more: Readonly<Record<string, string>> = {}): NodeJS.ProcessEnv {
  const env: NodeJS.ProcessEnv = { ...process.env, PORTCULLIS, ...more }
  for (const name of ['NODE_TEST_CONTEXT', 'NODE_OPTIONS', 'NODE_V8_COVERAGE', 'KUBECONFIG']) delete env[name]
  env['PATH'] = `${kubectlFolder}:${process.env['PATH']}`
  return env
}

function script(name: string, args: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<Ran> {
  return new Promise((done) => {
    const options = { env: cleanEnv(env), timeout: 300_000 }
    execFile(join(ROOT, 'deploy/drill', name), args, options, (error, stdout, stderr) => {
      done({ code: error === null ? 0 : typeof error.code === 'number' ? error.code : -1, stdout, stderr })
    })
  })
}

async function start(dataDir: string): Promise<Gateway> {
  const [port = 0, adminPort = 0, controlPort = 0] = await freePorts(3)
  const running = await startProcess({
    name: 'gateway',
    command: PORTCULLIS,
    args: [
      ...['serve', '--threads=1', `--data-dir=${dataDir}`, `--listen=127.0.0.1:${port}`, '--drain-timeout=1s'],
      ...[`--admin-listen=127.0.0.1:${adminPort}`, `--control-listen=127.0.0.1:${controlPort}`],
      LOCAL_SERVERS_FLAG,
    ],
    env: { NODE_TEST_CONTEXT: undefined, NODE_OPTIONS: undefined, NODE_V8_COVERAGE: undefined },
    logFile: join(dir, 'gateway.log'),
    ready: async () => (await fetch(`http://127.0.0.1:${adminPort}/readyz`)).ok,
  })
  return { process: running, port, controlPort }
}

/** As kubectl with a kubeconfig that was handed out once: it trusts this CA, and has this certificate. */
function ask(port: number, caPem: string): Promise<number> {
  return new Promise((done, failed) => {
    const sent = request(
      {
        ...{ host: '127.0.0.1', port, servername: 'localhost', path: '/clusters/prod.example.com/api/v1/pods' },
        ...{ ca: caPem, cert: alice.certPem, key: alice.keyPem, agent: false },
      },
      (response) => {
        response.resume()
        response.on('end', () => done(response.statusCode ?? 0))
      },
    )
    sent.on('error', failed)
    sent.end()
  })
}

describe('a gateway with the embedded API server', () => {
  const backup = join(dir, 'backup')
  const dataDir = join(dir, 'data')
  const elsewhere = join(dir, 'elsewhere')
  let stub: StubUpstream
  let gateway: Gateway
  let caPem: string
  let credentials: { readonly caPem: string; readonly certPem: string; readonly keyPem: string }

  function admin(): ControlClient {
    const { certPem, keyPem } = credentials
    // These two are all that it asks for.
    const control = { port: gateway.controlPort, caPem: credentials.caPem } as TestControl
    return new ControlClient(control, { cert: { certPem, keyPem } })
  }

  before(async () => {
    kubectlFolder = dirname((await binaries()).kubectl)
    stub = await startStub()
    gateway = await start(dataDir)
    caPem = readFileSync(join(dataDir, 'pki/ca.crt'), 'utf8')
    const { clusters, users } = parse(readFileSync(join(dataDir, 'control/pki/admin.kubeconfig'), 'utf8'))
    const decoded = (base64: string): string => Buffer.from(base64, 'base64').toString()
    credentials = {
      caPem: decoded(clusters[0].cluster['certificate-authority-data']),
      certPem: decoded(users[0].user['client-certificate-data']),
      keyPem: decoded(users[0].user['client-key-data']),
    }
    const client = admin()
    const created = await client.post(UC_PATH, clusterObject([stub], { clientCA }))
    assert.equal(created.code, 201, created.text)
    const secret = { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'kept' }, stringData: { token: 'sesame' } }
    assert.equal((await client.post(SECRETS, secret)).code, 201)
    client.close()
    await waitFor('an answer of the cluster', async () => (await ask(gateway.port, caPem)) === 200)
  }, PATIENT)
  after(async () => {
    await gateway?.process.stop()
    await stub?.stop()
    rmSync(dir, { recursive: true, force: true })
  })

  test('is backed up while it serves', PATIENT, async () => {
    let over = false
    const backedUp = script('backup.sh', [dataDir, backup]).finally(() => {
      over = true
    })
    const codes = new Set<number>()
    do codes.add(await ask(gateway.port, caPem))
    while (!over)
    const { code, stdout, stderr } = await backedUp
    assert.equal(code, 0, stderr)
    assert.match(stdout, /backup is complete\n$/)
    assert.deepEqual([...codes], [200])
    assert.equal(statSync(backup).mode & 0o077, 0, 'no other user can read it')
    assert.ok(!readFileSync(join(backup, 'objects.db')).includes('sesame'), 'Secrets are encrypted')
    const again = await script('backup.sh', [dataDir, backup])
    assert.equal(again.code, 1)
    assert.match(again.stderr, /^error: \S+backup exists already/)
  })

  test(
    'a drill says that the backup is good, lists its objects, and shows what a lost key and a damaged store look like',
    PATIENT,
    async () => {
      // What the gateway that serves is told must not reach that of the drill.
      const { code, stdout, stderr } = await script('drill.sh', [backup], {
        PORTCULLIS_REDIS_URL: 'redis://127.0.0.1:1',
      })
      assert.equal(code, 0, `${stdout}${stderr}`)
      assert.match(stdout, /^portcullis is ready: listening on 127\.0\.0\.1:\d+/m)
      assert.match(stdout, /^ +1 upstreamcluster\S*$/m)
      assert.match(stdout, /^ +1 secret$/m)
      assert.match(stdout, /^without the key:\nerror: .* key/m)
      assert.match(stdout, /^with half of the store:\nerror: .*damaged/m)
      assert.match(stdout, /\nthe backup is good\n$/)
    },
  )

  test('a damaged or incomplete backup is found by the drill, and is not restored', PATIENT, async () => {
    const spoilt = join(dir, 'spoilt')
    const spoil = async (how: () => void): Promise<Ran> => {
      rmSync(spoilt, { recursive: true, force: true })
      cpSync(backup, spoilt, { recursive: true })
      how()
      return script('drill.sh', [spoilt])
    }
    const objects = join(spoilt, 'objects.db')
    const flipped = await spoil(() => {
      const bytes = readFileSync(objects)
      bytes[5000] = (bytes[5000] ?? 0) ^ 1
      writeFileSync(objects, bytes)
    })
    const incomplete = await spoil(() => rmSync(join(spoilt, 'secrets/store.key')))
    for (const { code, stderr } of [flipped, incomplete]) {
      assert.equal(code, 1)
      assert.match(stderr, /is damaged; take another backup\nFAILED: it cannot be restored\n$/)
    }
    const target = join(dir, 'not-restored')
    assert.equal((await script('restore.sh', [spoilt, target])).code, 1)
    assert.equal(existsSync(target), false)
  })

  test('no backup, and no store: one line each, and nothing is left behind', PATIENT, async () => {
    const nothing = join(dir, 'nothing')
    const target = join(dir, 'of-nothing')
    for (const [name, args, line] of [
      [
        'restore.sh',
        [nothing, target],
        `error: ${nothing} is no backup of backup.sh; name the folder that it has made\n`,
      ],
      ['backup.sh', [nothing, target], `error: there is no store in ${nothing}; name the --data-dir of the gateway\n`],
    ] as const) {
      const { code, stderr } = await script(name, [...args])
      assert.deepEqual([code, stderr, existsSync(target)], [1, line, false])
    }
  })

  test(
    'lost, and restored elsewhere: clients with the same CA and certificate are served, administrators and Secrets are there',
    PATIENT,
    async () => {
      const later = admin()
      assert.equal((await later.post(UC_PATH, clusterObject([stub], { name: 'later.example.com' }))).code, 201)
      later.close()
      await gateway.process.stop(0)
      rmSync(dataDir, { recursive: true })

      const restored = await script('restore.sh', [backup, elsewhere])
      assert.equal(restored.code, 0, restored.stderr)
      gateway = await start(elsewhere)
      assert.equal(await ask(gateway.port, caPem), 200)
      const client = admin()
      const { json } = await client.get(UC_PATH)
      assert.deepEqual(
        json.items.map(({ metadata }: { metadata: { name: string } }) => metadata.name),
        ['prod.example.com'],
        'what was written after the backup is lost',
      )
      const secret = await client.get(`${SECRETS}/kept`)
      assert.equal(Buffer.from(secret.json.data.token, 'base64').toString(), 'sesame')
      client.close()

      const over = await script('restore.sh', [backup, elsewhere])
      assert.equal(over.code, 1)
      assert.match(over.stderr, /has a store already/)
    },
  )
})
