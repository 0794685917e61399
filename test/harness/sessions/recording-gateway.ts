// A gateway in this process that records sessions, in front of an upstream of which the test writes every byte.

import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, afterEach, beforeEach } from 'node:test'
import type { UpstreamClusterSpec } from '../../../src/gateway/api/upstream-cluster/upstream-cluster.ts'
import { createCA, type KeyPair } from '../../../src/pki/io/pki.ts'
import type { Config } from '../../../src/process/config/config.ts'
import { http1Connect } from '../clients/http1-client.ts'
import { type InProcessGateway, startInProcess } from '../gateways/in-process.ts'
import { base64, clientPair, clusterObject } from '../objects/objects.ts'
import { type Http1Stub, startHttp1Stub } from '../upstreams/stub-http1.ts'

export type Sessions = NonNullable<NonNullable<UpstreamClusterSpec['audit']>['sessions']>
export type SessionClient = Awaited<ReturnType<typeof http1Connect>>

export interface RecordingGateway {
  /** What a test writes into it is removed in the end. */
  readonly folder: string
  readonly keyFile: string
  /** Upstream of the test that runs. */
  readonly stub: Http1Stub
  /** Where its recordings are. */
  readonly dir: string
  readonly auditLogPath: string
  start(sessions: Sessions, settings?: Partial<Config>): Promise<void>
  /** A connection of alice. */
  connect(): Promise<SessionClient>
  /** As they are scraped. */
  metrics(): Promise<string>
  stop(): Promise<void>
}

/** For the tests of a file: what they start is stopped behind each of them. */
export function recordingGateway(): RecordingGateway {
  const clientCA: KeyPair = createCA({ commonName: 'clients of prod' })
  const alice = clientPair(clientCA, 'alice', ['dev'])
  const folder = mkdtempSync(join(tmpdir(), 'sessions-'))
  const keyFile = join(folder, 'sessions.key')
  writeFileSync(keyFile, `${randomBytes(32).toString('base64')}\n`)
  let stub: Http1Stub
  let gateway: InProcessGateway | undefined
  let own = ''
  const stop = async (): Promise<void> => {
    await gateway?.stop()
    gateway = undefined
  }
  beforeEach(async () => {
    stub = await startHttp1Stub()
    own = mkdtempSync(join(folder, 'one-'))
  })
  afterEach(async () => {
    await stop()
    await stub.stop()
  })
  after(() => rmSync(folder, { recursive: true }))
  return {
    folder,
    keyFile,
    stop,
    metrics: async () => (await gateway?.metrics()) ?? '',
    get stub() {
      return stub
    },
    get dir() {
      return join(own, 'recordings')
    },
    get auditLogPath() {
      return join(own, 'audit.log')
    },
    async start(sessions, settings = {}) {
      const clientConfig = { bearerToken: base64('gateway-token'), caData: base64(stub.caPem) }
      const spec = { servers: [{ endpoint: stub.url }], clientConfig, audit: { sessions } }
      gateway = await startInProcess([clusterObject([], { clientCA, spec })], {
        auditLogPath: join(own, 'audit.log'),
        sessionRecordingDir: join(own, 'recordings'),
        sessionRecordingKeyFile: keyFile,
        ...settings,
      })
    },
    connect: () => http1Connect({ port: gateway?.port ?? 0, serverName: 'prod.example.com', cert: alice }),
  }
}
