// UpstreamCluster objects for tests with stub upstreams.

import type {
  DispatchPolicy,
  UpstreamCluster,
  UpstreamClusterSpec,
} from '../../../src/gateway/api/upstream-cluster/upstream-cluster.ts'
import { issueCertificate, type KeyPair } from '../../../src/pki/io/pki.ts'
import type { StubUpstream } from '../upstreams/stub-upstream.ts'

export interface TestClusterOptions {
  readonly name?: string
  readonly clientCA?: KeyPair
  readonly spec?: Partial<UpstreamClusterSpec>
}

export const ALLOW_ALL: DispatchPolicy = {
  rules: [
    { verbs: ['*'], apiGroups: ['*'], resources: ['*'] },
    { verbs: ['*'], nonResourceURLs: ['*'] },
  ],
}

export function base64(text: string): string {
  return Buffer.from(text).toString('base64')
}

export function clusterObject(stubs: readonly StubUpstream[], options: TestClusterOptions = {}): UpstreamCluster {
  const ca = stubs[0]?.caPem ?? ''
  return {
    apiVersion: 'proxy.kubegateway.io/v1alpha1',
    kind: 'UpstreamCluster',
    metadata: { name: options.name ?? 'prod.example.com' },
    spec: {
      servers: stubs.map((stub) => ({ endpoint: stub.url })),
      clientConfig: { bearerToken: base64('gateway-token'), caData: base64(ca) },
      ...(options.clientCA === undefined ? {} : { secureServing: { clientCAData: base64(options.clientCA.certPem) } }),
      dispatchPolicies: [ALLOW_ALL],
      healthCheck: { intervalSeconds: 1 },
      ...options.spec,
    },
  }
}

export function clientPair(ca: KeyPair, name: string, organizations: readonly string[] = []): KeyPair {
  return issueCertificate(ca, { commonName: name, organizations, usage: 'client' })
}
