// UpstreamCluster manifests for test clusters, and the kubeconfigs that lead to them through a gateway.

import {
  UPSTREAM_CLUSTER_API_VERSION,
  UPSTREAM_CLUSTER_KIND,
  type UpstreamCluster,
  type UpstreamClusterSpec,
} from '../../../src/gateway/api/upstream-cluster/upstream-cluster.ts'
import { gatewayCA, LOOPBACK_ADDRESSES, serverCertificate } from '../pki.ts'
import { nameProxyUrl } from '../upstreams/name-proxy.ts'
import type { TestCluster } from './cluster.ts'
import { base64, type Credentials, writeKubeconfig } from './kubeconfig.ts'

export interface UpstreamClusterOptions {
  /** metadata.name. Default: the cluster's name. */
  readonly name?: string
  /** How the gateway signs in. Default `certificate`. */
  readonly credentials?: 'certificate' | 'token'
  readonly annotations?: Readonly<Record<string, string>>
  /** Replaces whole fields of the default spec. */
  readonly spec?: Partial<UpstreamClusterSpec>
}

/** The host name by which a gateway serves the UpstreamCluster `name`, in addition to `name` itself. */
export function hostOf(name: string): string {
  return `${name}.portcullis.test`
}

/** All apiservers of `cluster`; all users that its client CA or its tokens authenticate; everything forwarded and logged. */
export function upstreamClusterFor(cluster: TestCluster, options: UpstreamClusterOptions = {}): UpstreamCluster {
  const name = options.name ?? cluster.name
  const { cert, token } = cluster.gatewayUser
  const serving = serverCertificate(gatewayCA(), [hostOf(name), name, 'localhost'], LOOPBACK_ADDRESSES)
  const credentials =
    options.credentials === 'token'
      ? { bearerToken: base64(token) }
      : { certData: base64(cert.certPem), keyData: base64(cert.keyPem) }
  return {
    apiVersion: UPSTREAM_CLUSTER_API_VERSION,
    kind: UPSTREAM_CLUSTER_KIND,
    metadata: { name, ...(options.annotations !== undefined && { annotations: options.annotations }) },
    spec: {
      servers: cluster.apiservers.map(({ url }) => ({ endpoint: url })),
      clientConfig: { ...credentials, caData: base64(cluster.ca.certPem) },
      secureServing: {
        certData: base64(serving.certPem),
        keyData: base64(serving.keyPem),
        clientCAData: base64(cluster.clientCA.certPem),
        serverNames: [hostOf(name)],
      },
      dispatchPolicies: [
        {
          rules: [
            { verbs: ['*'], apiGroups: ['*'], resources: ['*'] },
            { verbs: ['*'], nonResourceURLs: ['*'] },
          ],
        },
      ],
      logging: { mode: 'on' },
      ...options.spec,
    },
  }
}

export interface ThroughOptions {
  /** `https://127.0.0.1:PORT/clusters/NAME`. Default: by host name, through a proxy of this process that stands in for DNS. */
  readonly path?: boolean
  /** `https://ADDRESS:PORT`, for spec.addresses and spec.default. */
  readonly address?: string
  /** metadata.name of the UpstreamCluster. Default: the cluster's name. */
  readonly name?: string
}

/** A kubeconfig for a user of `cluster` that leads through the gateway. Long-running components are better off with `path`. */
export async function kubeconfigThrough(
  gateway: { readonly port: number },
  cluster: TestCluster,
  user: Credentials,
  options: ThroughOptions = {},
): Promise<string> {
  const name = options.name ?? cluster.name
  const common = { ca: gatewayCA().certPem, user }
  const file = cluster.newKubeconfigPath()
  if (options.path === true) {
    return writeKubeconfig(file, { ...common, server: `https://127.0.0.1:${gateway.port}/clusters/${name}` })
  }
  if (options.address !== undefined) {
    return writeKubeconfig(file, { ...common, server: `https://${options.address}:${gateway.port}` })
  }
  const server = `https://${hostOf(name)}:${gateway.port}`
  return writeKubeconfig(file, { ...common, server, proxyUrl: await nameProxyUrl() })
}
