// The gateway inside the test process, fed with objects instead of files: for tests of the request path with stub upstreams.

import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { ResolvedCluster, ResourceSource, SourceChange } from '../../../src/gateway/api/resource-source.ts'
import type { UpstreamCluster } from '../../../src/gateway/api/upstream-cluster/upstream-cluster.ts'
import type { Logger } from '../../../src/kit/api/ports.ts'
import { parseAllowedServer } from '../../../src/kit/core/dial/dial-rules.ts'
import { type Config, loadConfig } from '../../../src/process/config/config.ts'
import type { GatewayOverrides } from '../../../src/program/lifecycle/running-gateway.ts'
import { startGateway } from '../../../src/program/lifecycle/start-gateway.ts'
import { LOOPBACK_SERVERS } from './local-servers.ts'

/** Longer than any drain of a test takes that is not about one without end; each further stop ends more of it. */
const LONGEST_STOP_MS = 120_000

export interface InProcessGateway {
  readonly port: number
  readonly ports: readonly number[]
  readonly adminPort: number
  /** 0 = there is no health listener. */
  readonly healthPort: number
  readonly logged: readonly { level: string; message: string; fields: Record<string, unknown> }[]
  /** Replaces all objects; in force when it returns, where there are no threads. */
  apply(clusters: readonly UpstreamCluster[]): void
  /** Resolves when what was applied is in force in every thread. */
  applied(): Promise<void>
  /** Ends a gateway thread as a crash would. */
  crashThread(thread: number): Promise<void>
  metrics(): Promise<string>
  stop(): Promise<void>
}

/**
 * Without `threads` among the overrides, requests are served by this thread itself, which starts faster.
 * @param delivered when the source has its objects; default: at once
 * @param given replaces further parts
 */
export async function startInProcess(
  clusters: readonly UpstreamCluster[],
  overrides: Partial<Config> = {},
  delivered: Promise<void> = Promise.resolve(),
  given: Partial<GatewayOverrides> = {},
): Promise<InProcessGateway> {
  const dataDir = mkdtempSync(join(tmpdir(), 'portcullis-'))
  let deliver: ((change: SourceChange) => void) | undefined
  let revision = 0
  const changeOf = (objects: readonly UpstreamCluster[]): SourceChange => {
    revision++
    const entries = objects.map((object): [string, ResolvedCluster] => [
      object.metadata.name,
      { object, revision: String(revision) },
    ])
    return { clusters: new Map(entries), problems: [] }
  }
  const source: ResourceSource = {
    async start(onChange) {
      await delivered
      deliver = onChange
      onChange(changeOf(clusters))
    },
    stop: () => Promise.resolve(),
  }
  const logged: { level: string; message: string; fields: Record<string, unknown> }[] = []
  const logAs =
    (level: string) =>
    (message: string, fields: Record<string, unknown> = {}): void =>
      void logged.push({ level, message, fields })
  const log: Logger = { debug: logAs('debug'), info: logAs('info'), warn: logAs('warn'), error: logAs('error') }
  const config: Config = {
    ...loadConfig({ flags: { source: 'files', configDir: 'given' }, env: {}, readFile: () => '' }),
    listen: [{ host: '127.0.0.1', port: 0 }],
    adminListen: '127.0.0.1:0',
    dataDir,
    drainTimeoutMs: 2_000,
    accessLog: false,
    maxHeaderBytes: 1024 * 1024,
    maxConcurrentStreams: 250,
    headerTimeoutMs: 10_000,
    allowLocalServers: LOOPBACK_SERVERS.map((text) => parseAllowedServer(text) ?? assert.fail(text)),
    // All clients of a test have one address.
    maxAuthenticationFailures: 0,
    threads: 1,
    warnings: [],
    ...overrides,
  }
  const gateway = await startGateway(config, {
    // Lines that a test wants are made by the gateway's own logger.
    ...(given.logLines === undefined && { log }),
    source,
    inline: overrides.threads === undefined,
    ...given,
  })
  return {
    port: gateway.ports[0] ?? 0,
    ports: gateway.ports,
    adminPort: gateway.adminPort,
    healthPort: gateway.healthPort,
    logged,
    apply: (objects) => deliver?.(changeOf(objects)),
    applied: () => gateway.applied(),
    crashThread: (thread) => gateway.crashThread(thread),
    metrics: async () => (await fetch(`http://127.0.0.1:${gateway.adminPort}/metrics`)).text(),
    async stop() {
      const stopped = gateway.stop()
      // What a failed test has left open must not hold up its whole file.
      const impatient = setInterval(() => void gateway.stop(), LONGEST_STOP_MS)
      await stopped.finally(() => clearInterval(impatient))
      rmSync(dataDir, { recursive: true, force: true })
    },
  }
}
