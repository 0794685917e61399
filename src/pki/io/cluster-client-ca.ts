// The CA of a cluster's client certificates, as published by its kube-apiserver for extension API servers
// (kubernetes/pkg/controlplane/controller/clusterauthenticationtrust).

import { isRecord, textOf } from '../../kit/api/json/object-shape.ts'
import type { Logger } from '../../kit/api/ports.ts'
import { CONFIG_MAPS } from '../../kube/api/kinds/foreign-kinds.ts'
import { createKubeClient } from '../../kube/io/client.ts'
import type { KubeConfigOptions } from '../../kube/io/config.ts'

const AT = { namespace: 'kube-system', name: 'extension-apiserver-authentication' } as const
const TIMEOUT_MS = 5_000

/**
 * PEM; '' = the cluster accepts no client certificates.
 * @throws (rejects) an Error for people if the cluster does not respond within 5 s, or does not publish it
 */
export async function readClientCA(options: KubeConfigOptions, log: Logger): Promise<string> {
  const client = createKubeClient({ ...options, log, timeoutMs: TIMEOUT_MS })
  try {
    const { data } = await client.get(CONFIG_MAPS, AT)
    const pem = isRecord(data) ? data['client-ca-file'] : undefined
    return textOf(pem)
  } finally {
    await client.close()
  }
}
