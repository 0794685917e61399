// The protection webhook on the workers, installed as an operator does it.

import { join } from 'node:path'
import { runCli } from '../gateways/embedded.ts'
import type { TestCluster } from './cluster.ts'
import type { ProtectedClusters } from './protected-clusters.ts'

/** With `portcullis protect install`, for the first replica. */
export async function installWebhooks(
  world: ProtectedClusters,
  workers: readonly TestCluster[] = world.workers,
): Promise<void> {
  const { webhookPort, dataDir } = world.gateway
  for (const worker of workers) {
    const { code, stdout, stderr } = await runCli([
      'protect',
      'install',
      `--cluster=${worker.name}`,
      `--url=https://127.0.0.1:${webhookPort}`,
      `--kubeconfig=${worker.adminKubeconfig}`,
      `--data-dir=${join(dataDir)}`,
    ])
    if (code !== 0) throw new Error(`protect install: ${stdout}${stderr}`)
  }
}
