// A cluster whose one member is a stub, which sees each header field and each byte.

import type { ClientHttp2Session } from 'node:http2'
import type {
  UpstreamCluster,
  UpstreamClusterSpec,
} from '../../../src/gateway/api/upstream-cluster/upstream-cluster.ts'
import { createCA, type KeyPair } from '../../../src/pki/io/pki.ts'
import type { Config } from '../../../src/process/config/config.ts'
import { h2Connect } from '../clients/h2-client.ts'
import { type InProcessGateway, startInProcess } from '../gateways/in-process.ts'
import { ALLOW_ALL, clientPair, clusterObject } from '../objects/objects.ts'
import { type StubUpstream, startStub } from '../upstreams/stub-upstream.ts'

const clientCA = createCA({ commonName: 'clients of all' })

export interface FederatedStub {
  readonly gateway: InProcessGateway
  readonly east: StubUpstream
  connect(user: string, groups?: readonly string[]): ClientHttp2Session
  /** For other clients. */
  certificateOf(user: string): KeyPair
  stop(): Promise<void>
}

/** Pods of `east` are read through `all`, whose users it trusts. */
export async function startFederatedStub(
  ofAll: Partial<UpstreamClusterSpec> = {},
  config: Partial<Config> = {},
  ofEast: Partial<UpstreamClusterSpec> = {},
): Promise<FederatedStub> {
  const east = await startStub()
  const all = clusterObject([], { name: 'all', clientCA })
  const spec = {
    secureServing: all.spec.secureServing,
    dispatchPolicies: [ALLOW_ALL],
    members: [{ name: 'east', trustUsers: true }],
    federation: { resources: [{ version: 'v1', resource: 'pods' }] },
    ...ofAll,
  }
  const member = clusterObject([east], { name: 'east' })
  const objects = [{ ...member, spec: { ...member.spec, ...ofEast } }, { ...all, spec } as UpstreamCluster]
  const gateway = await startInProcess(objects, config)
  const sessions: ClientHttp2Session[] = []
  return {
    gateway,
    east,
    connect: (user, groups = []) => {
      const certificate = clientPair(clientCA, user, groups)
      const session = h2Connect({ port: gateway.port, serverName: 'all', certificate })
      sessions.push(session)
      return session
    },
    certificateOf: (user) => clientPair(clientCA, user),
    stop: async () => {
      for (const session of sessions) session.destroy()
      await gateway.stop()
      await east.stop()
    },
  }
}
