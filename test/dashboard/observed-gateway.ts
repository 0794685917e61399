// A gateway with something to look at: traffic, errors, refusals, a degrade switch, a server that is away; and a thousand clusters.

import type { ClientHttp2Session } from 'node:http2'
import type { UpstreamCluster } from '../../src/gateway/api/upstream-cluster/upstream-cluster.ts'
import { createCA, type KeyPair } from '../../src/pki/io/pki.ts'
import type { Config } from '../../src/process/config/config.ts'
import { h2Connect, h2Request } from '../harness/clients/h2-client.ts'
import { type InProcessGateway, startInProcess } from '../harness/gateways/in-process.ts'
import { clientPair, clusterObject } from '../harness/objects/objects.ts'
import { type Http1Stub, startHttp1Stub } from '../harness/upstreams/stub-http1.ts'
import { reply, type StubUpstream, startStub } from '../harness/upstreams/stub-upstream.ts'

/** Markup: as a reason, a user agent, a name. */
export const MARKUP = '<img src=x onerror="window.hacked=1"><script>window.hacked=1</script>'

export interface ObservedGateway {
  readonly gateway: InProcessGateway
  /** The origin of the admin listener. */
  readonly origin: string
  /** So many requests, some of which fail and some are refused. */
  traffic(requests: number): Promise<void>
  /** The objects as they are; to be changed and applied. */
  readonly clusters: UpstreamCluster[]
  readonly stub: StubUpstream
  stop(): Promise<void>
}

/** @param others clusters beside the busy one */
export async function startObserved(others: number, overrides: Partial<Config> = {}): Promise<ObservedGateway> {
  const clientCA: KeyPair = createCA({ commonName: 'clients of prod' })
  const stub = await startStub()
  // Without TLS: a thousand clusters probe it.
  const plain = await startHttp1Stub({ plain: true })
  stub.answer = (request) => reply(request, request.path.includes('broken') ? 500 : 200, '{"kind":"Stub"}')
  const clusters = [busyCluster(stub, clientCA), ...Array.from({ length: others }, (_, i) => idleCluster(plain, i))]
  const gateway = await startInProcess(clusters, overrides)
  const certificate = clientPair(clientCA, 'alice', ['dev'])
  const session: ClientHttp2Session = h2Connect({ port: gateway.port, serverName: 'prod.example.com', certificate })
  return {
    gateway,
    origin: `http://127.0.0.1:${gateway.adminPort}`,
    clusters,
    stub,
    async traffic(requests) {
      for (let i = 0; i < requests; i++) {
        const path = i % 7 === 3 ? '/api/v1/namespaces/broken/pods' : i % 5 === 1 ? '/api/v1/secrets' : '/api/v1/pods'
        await h2Request(session, [':path', path, 'user-agent', MARKUP])
      }
    },
    async stop() {
      session.destroy()
      await gateway.stop()
      await stub.stop()
      await plain.stop()
    },
  }
}

function busyCluster(stub: StubUpstream, clientCA: KeyPair): UpstreamCluster {
  const ALL = { verbs: ['*'], apiGroups: ['*'], resources: ['*'], nonResourceURLs: ['*'] }
  const object = clusterObject([stub], { clientCA })
  const away = { endpoint: 'https://127.0.0.1:1' }
  return {
    ...object,
    spec: {
      ...object.spec,
      servers: [...object.spec.servers, away],
      flowControl: {
        flowControlSchemas: [
          { name: 'reads', tokenBucket: { qps: 50, burst: 100 } },
          { name: 'writes', maxRequestsInflight: { max: 20 } },
        ],
      },
      dispatchPolicies: [
        { rules: [{ ...ALL, resources: ['secrets'] }], action: 'Deny' },
        { rules: [{ ...ALL, verbs: ['get', 'list', 'watch'] }], flowControlSchemaName: 'reads' },
        { rules: [ALL], flowControlSchemaName: 'writes' },
      ],
    },
  }
}

/** The index of the idle cluster whose pods are protected. */
const PROTECTED_INDEX = 3
export const PROTECTED = 'build-0003'

/** Every tenth is switched, with markup for a reason; every hundredth has no server that answers. */
function idleCluster(plain: Http1Stub, index: number): UpstreamCluster {
  const object = clusterObject([], { spec: { servers: [{ endpoint: plain.url }] } })
  const env = ['prod', 'stage', 'edge', 'build'][index % 4] ?? ''
  const name = `${env}-${String(index).padStart(4, '0')}`
  const { secureServing: _, ...spec } = object.spec
  const reason = index % 20 === 9 ? MARKUP : 'etcd is being restored from the backup of this morning'
  const expiresAt = new Date(Date.now() + 3_600_000 + index * 1000).toISOString()
  return {
    ...object,
    metadata: { ...object.metadata, name, labels: { env } },
    spec: {
      ...spec,
      healthCheck: { intervalSeconds: 10, timeoutSeconds: 30 },
      ...(index === PROTECTED_INDEX && { podProtection: { cell: 'shop' } }),
      servers: index % 100 === 42 ? [{ endpoint: 'https://127.0.0.1:1' }] : spec.servers,
      ...(index % 10 === 9 && { degrade: { mode: index % 30 === 9 ? 'ReadOnly' : 'NoDisruption', reason, expiresAt } }),
    },
  }
}
