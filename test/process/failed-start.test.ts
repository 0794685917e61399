// A start that fails writes nothing, and leaves nothing open: a gateway that runs with the same data directory goes on as before.

import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { UPSTREAM_CLUSTERS } from '../../src/gateway/api/upstream-cluster-kind.ts'
import { type Logger, SILENT } from '../../src/kit/api/ports.ts'
import { errorWithFix } from '../../src/kit/api/validation/error-message.ts'
import { loadConfig } from '../../src/process/config/config.ts'
import type { RunningGateway } from '../../src/program/lifecycle/running-gateway.ts'
import { startGateway } from '../../src/program/lifecycle/start-gateway.ts'
import { waitFor } from '../harness/wait.ts'

const MISSING = '/does/not/exist'
const HOST = 'gateway.example.com'
const LISTENERS = ['listen', 'adminListen', 'controlListen', 'healthListen', 'protectionListen']
let dir: string
let taken: number
const holder = createServer()

before(async () => {
  dir = mkdtempSync(join(tmpdir(), 'portcullis-failed-start-'))
  await new Promise<void>((resolve) => holder.listen(0, '127.0.0.1', resolve))
  const address = holder.address()
  taken = typeof address === 'object' && address !== null ? address.port : assert.fail()
})
after(() => {
  holder.close()
  rmSync(dir, { recursive: true, force: true })
})

type Flags = Readonly<Record<string, string | readonly string[]>>

async function start(dataDir: string, flags: Flags, log: Logger = SILENT): Promise<RunningGateway> {
  const port = '127.0.0.1:0'
  const usual = { source: 'embedded', listen: [port], adminListen: port, controlListen: port, accessLog: 'false' }
  const config = loadConfig({
    flags: { ...usual, ...flags, dataDir },
    env: {},
    readFile: (path) => readFileSync(path, 'utf8'),
  })
  return await startGateway(config, { log, inline: true })
}

/** What differs from a start that would succeed, and what the error says. */
interface Failure {
  readonly title: string
  flags(): Flags
  readonly error: RegExp
}

function file(name: string, text: string): string {
  const path = join(dir, name)
  writeFileSync(path, text)
  return path
}

const FAILURES: readonly Failure[] = [
  ...LISTENERS.map((name) => ({
    title: `the port of ${name} is in use`,
    flags: () => ({ [name]: name === 'listen' ? [`127.0.0.1:${taken}`] : `127.0.0.1:${taken}` }),
    error: /cannot listen on 127\.0\.0\.1/,
  })),
  { title: 'a flag is wrong', flags: () => ({ drainTimeout: 'soon' }), error: /--drain-timeout/ },
  { title: 'a host name is wrong', flags: () => ({ controlHost: ['not a host'] }), error: /not a host name/ },
  {
    title: 'the certificate cannot be read',
    flags: () => ({ tlsCertFile: MISSING, tlsPrivateKeyFile: MISSING }),
    error: /--tls-cert-file/,
  },
  {
    title: 'the certificate of the admin listener cannot be read',
    flags: () => ({ adminTlsCertFile: MISSING, adminTlsPrivateKeyFile: MISSING }),
    error: /--admin-tls-cert-file/,
  },
  {
    title: 'the certificate of the health listener cannot be read',
    flags: () => ({ healthListen: '127.0.0.1:0', healthTlsCertFile: MISSING, healthTlsPrivateKeyFile: MISSING }),
    error: /--health-tls-cert-file/,
  },
  {
    title: 'the kubeconfig is wrong',
    flags: () => ({ source: 'kubernetes', kubeconfig: file('kubeconfig', 'kind: Config\n') }),
    error: /kubeconfig/,
  },
  {
    title: 'the kubeconfig of the PodProtectors is wrong',
    flags: () => ({ protectionKubeconfig: file('protection', 'kind: Config\n') }),
    error: /protection/,
  },
  {
    title: 'the configuration of the generator is wrong',
    flags: () => ({
      protectionWorkloadsKubeconfig: MISSING,
      protectionGeneratorConfig: file('generator.yaml', 'kinds: 1\n'),
    }),
    error: /--protection-generator-config/,
  },
  {
    title: 'the audit policy is wrong',
    flags: () => ({
      auditLogPath: join(dir, 'audit.log'),
      auditPolicyFile: file('policy.yaml', 'rules: 1\n'),
    }),
    error: /--audit-policy-file/,
  },
  {
    title: 'the kubeconfig of the audit webhook is wrong',
    flags: () => ({ auditWebhookConfigFile: file('webhook', 'kind: Config\n') }),
    error: /webhook/,
  },
  {
    title: 'the CA of the OpenID provider cannot be read',
    flags: () => ({
      controlOidcIssuerUrl: 'https://issuer.example.com',
      controlOidcClientId: 'portcullis',
      controlOidcCaFile: MISSING,
    }),
    error: /--control-oidc-ca-file/,
  },
  {
    title: 'the password of Redis cannot be read',
    flags: () => ({ redisUrl: 'redis://127.0.0.1:1', redisPasswordFile: MISSING }),
    error: /--redis-password-file/,
  },
  {
    title: 'the CA of the collector of traces cannot be read',
    flags: () => ({ tracingOtlpEndpoint: 'https://127.0.0.1:1', tracingOtlpCaFile: MISSING }),
    error: /--tracing-otlp-ca-file/,
  },
  {
    title: 'the access key for the recordings of sessions is not one',
    flags: () => ({
      sessionRecordingDir: join(dir, 'recordings'),
      sessionRecordingKeyFile: file('sessions.key', `${Buffer.alloc(32).toString('base64')}\n`),
      sessionRecordingS3Endpoint: 'https://127.0.0.1:1',
      sessionRecordingS3Bucket: 'audit',
      sessionRecordingS3CredentialsFile: file('s3', 'aws_access_key_id = ID\n'),
    }),
    error: /--session-recording-s3-credentials-file .* has no access key/,
  },
  { title: 'no socket was inherited', flags: () => ({ listen: ['systemd:proxy'] }), error: /LISTEN_FDS/ },
]

/** Each waits for the end of the process, to write what it still has. */
function openWriters(): number {
  return process.listenerCount('exit')
}

/** Fails to start, and leaves no writer open. */
async function fail(dataDir: string, flags: Flags, expected: RegExp): Promise<void> {
  const others = { controlHost: ['other.example.com'], ...flags }
  const writers = openWriters()
  const outcome = await start(dataDir, others).catch((error: unknown) => errorWithFix(error))
  if (typeof outcome === 'string') {
    assert.match(outcome, expected)
    assert.equal(openWriters(), writers)
    return
  }
  await outcome.stop()
  assert.fail('it has started')
}

describe('on an empty disk nothing is left of a start that fails because', () => {
  for (const { title, flags, error } of FAILURES) {
    test(title, async () => {
      const parent = mkdtempSync(join(dir, 'empty-'))
      await fail(join(parent, 'data'), flags(), error)
      assert.deepEqual(readdirSync(parent), [])
    })
  }
})

describe('with the data directory of a gateway that runs', () => {
  let dataDir: string
  let running: RunningGateway
  before(async () => {
    dataDir = join(mkdtempSync(join(dir, 'running-')), 'data')
    running = await start(dataDir, { controlHost: [HOST] })
  })
  after(() => running?.stop())

  /** All but the tables of the store, to which the running gateway writes. */
  function files(): ReadonlyMap<string, string> {
    const names = readdirSync(dataDir, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile() && !/^objects\.db(-wal|-shm)?$/.test(entry.name))
      .map((entry) => join(entry.parentPath, entry.name))
    return new Map(names.sort().map((name) => [name, readFileSync(name, 'base64')]))
  }

  async function assertUnharmed(before: ReadonlyMap<string, string>): Promise<void> {
    assert.deepEqual(files(), before)
    assert.deepEqual((await running.objects?.list(UPSTREAM_CLUSTERS, ''))?.items, [])
  }

  test('a second start, with other ports and another host name, finds the store in use', async () => {
    const before = files()
    await fail(dataDir, {}, /objects\.db is open in another process/)
    await assertUnharmed(before)
  })

  for (const { title, flags, error } of FAILURES) {
    test(`nothing changes when ${title}`, async () => {
      const before = files()
      await fail(dataDir, flags(), error)
      await assertUnharmed(before)
    })
  }
})

describe('nothing stays open after a start that fails', () => {
  const KUBECONFIG = JSON.stringify({
    kind: 'Config',
    clusters: [{ name: 'core', cluster: { server: 'https://127.0.0.1:1' } }],
    users: [{ name: 'portcullis', user: { token: 'secret' } }],
    contexts: [{ name: 'core', context: { cluster: 'core', user: 'portcullis' } }],
    'current-context': 'core',
  })

  /** A data directory whose key cannot be used, which is found when much has been opened. */
  function damaged(): string {
    const dataDir = join(mkdtempSync(join(dir, 'damaged-')), 'data')
    mkdirSync(join(dataDir, 'control'), { recursive: true, mode: 0o700 })
    writeFileSync(join(dataDir, 'control', 'store.key'), 'no key\n', { mode: 0o600 })
    return dataDir
  }

  function openFiles(): readonly string[] {
    return readdirSync('/proc/self/fd').flatMap((fd) => {
      try {
        return [readlinkSync(`/proc/self/fd/${fd}`)]
      } catch {
        return []
      }
    })
  }

  test('none of its files, when the store cannot be opened', async () => {
    await fail(damaged(), { auditLogPath: join(dir, 'open.log'), accessLog: 'true' }, /store\.key/)
    assert.deepEqual(
      openFiles().filter((path) => path.startsWith(dir) && path !== dir && !path.includes('running-')),
      [],
    )
  })

  /** Starts with Redis, and fails at a file that is gone once everything has been looked at. */
  async function failLate(name: string, flags: (path: string) => Flags): Promise<void> {
    const sockets = (): number => process.getActiveResourcesInfo().filter((name) => name.startsWith('TCPSocket')).length
    const [before, writers] = [sockets(), openWriters()]
    const path = file(name, name.endsWith('.token') ? 'a-token-of-at-least-16-characters\n' : '')
    const all = {
      source: 'files',
      configDir: mkdtempSync(join(dir, 'config-')),
      redisUrl: `redis://127.0.0.1:${taken}`,
      auditPolicyFile: file(
        'unknown.yaml',
        'kind: Policy\napiVersion: audit.k8s.io/v1\nunknown: 1\nrules: [{ level: Metadata }]\n',
      ),
      auditLogPath: join(dir, 'gone.log'),
      protectionKubeconfig: file('core', KUBECONFIG),
      ...flags(path),
    }
    // The warning about the audit policy comes when everything has been looked at, and before it is used.
    const log = { ...SILENT, warn: () => rmSync(path, { force: true }) }
    await assert.rejects(start(join(mkdtempSync(join(dir, 'gone-')), 'data'), all, log), new RegExp(name))
    assert.equal(openWriters(), writers)
    await waitFor('the connection to Redis to end', () => sockets() <= before)
  }

  test('none of its connections, when a file of a part is gone that was there before', () =>
    failLate('gone.yaml', (path) => ({ protectionGeneratorConfig: path })))

  test('none of its connections, when a file of the admin listener is gone that was there before', () =>
    failLate('gone.token', (path) => ({ adminTokenFile: path })))
})

test('what has started stops when a part behind it cannot start', async () => {
  const reserved = createServer()
  await new Promise<void>((resolve) => reserved.listen(0, '127.0.0.1', resolve))
  const address = reserved.address()
  const adminPort = typeof address === 'object' && address !== null ? address.port : assert.fail()
  await new Promise((resolve) => reserved.close(resolve))
  const flags = {
    source: 'files',
    configDir: mkdtempSync(join(dir, 'halfway-')),
    listen: ['127.0.0.1:0'],
    adminListen: `127.0.0.1:${adminPort}`,
    accessLog: 'false',
    dataDir: mkdtempSync(join(dir, 'halfway-data-')),
  }
  let stops = 0
  let adminAnswered = false
  const source = {
    async start() {
      adminAnswered = (await fetch(`http://127.0.0.1:${adminPort}/livez`)).ok
      throw new Error('the source cannot start')
    },
    stop() {
      stops++
      return Promise.resolve()
    },
  }
  const config = loadConfig({ flags, env: {}, readFile: () => '' })
  await assert.rejects(startGateway(config, { log: SILENT, inline: true, source }), /the source cannot start/)
  assert.deepEqual([adminAnswered, stops], [true, 1])
  await assert.rejects(fetch(`http://127.0.0.1:${adminPort}/livez`))
})

test('a gateway that has stopped leaves no writer open', async () => {
  const writers = openWriters()
  const gateway = await start(join(mkdtempSync(join(dir, 'stopped-')), 'data'), {
    accessLog: 'true',
    auditLogPath: join(dir, 'stopped.log'),
  })
  await gateway.stop()
  assert.equal(openWriters(), writers)
})
