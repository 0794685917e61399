// Finds kubeconfig contexts whose API server has a given kind: tries a few, in parallel, for a short time.

import type { Logger } from '../../kit/api/ports.ts'
import type { ResourceKind } from '../api/resource-kind.ts'
import { createKubeClient } from './client.ts'
import { type KubeConfigOptions, loadKubeConfig } from './config.ts'

/** A kubeconfig may have hundreds. */
const MAX_CONTEXTS = 16
const TIMEOUT_MS = 2_000

interface KubeContexts {
  /** The context that the options select; '' = none. */
  readonly current: string
  readonly contexts: readonly { readonly name: string; readonly server: string }[]
}

/** Contexts whose credentials need no plugin, which might prompt for a login. */
export function otherContexts(options: KubeConfigOptions): KubeContexts {
  const config = loadKubeConfig(options)
  const current = config.currentContext ?? ''
  const contexts = config.contexts.flatMap(({ name, cluster, user = '' }) => {
    const server = config.clusters.find((one) => one.name === cluster)?.server ?? ''
    const plugin = config.users.find((one) => one.name === user)
    const isPlain = plugin?.exec === undefined && (plugin?.authProvider?.name ?? 'tokenFile') === 'tokenFile'
    return name !== current && server.startsWith('https://') && isPlain ? [{ name, server }] : []
  })
  return { current, contexts }
}

/** Names of contexts, other than the current one, whose user may list objects of `kind`. Never throws. */
export async function contextsWith(kind: ResourceKind, options: KubeConfigOptions, log: Logger): Promise<string[]> {
  const { kubeconfigFile } = options
  try {
    const { contexts } = otherContexts(options)
    const asked = contexts.slice(0, MAX_CONTEXTS).map(async ({ name }) => {
      const client = createKubeClient({ kubeconfigFile, context: name, log, timeoutMs: TIMEOUT_MS })
      try {
        return (await client.currentVersion?.(kind)) === undefined ? [] : [name]
      } catch {
        return []
      } finally {
        await client.close()
      }
    })
    return (await Promise.all(asked)).flat()
  } catch {
    return []
  }
}
