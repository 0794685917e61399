// What can be wrong with a start is found before anything is written: a gateway that runs with the same data directory must not take over
// the certificates of one that never comes up.

import { type Logger, SILENT } from '../../api/ports/ports.ts'
import { WebhookKubeconfig } from '../../io/audit-webhook/webhook-kubeconfig.ts'
import { createKubeClient } from '../../io/kube/client.ts'
import { controlPaths } from '../../io/listener/control-paths.ts'
import { checkHosts } from '../../io/pki/control-pki.ts'
import { makePrivateDirectory } from '../../io/pki/pki-files.ts'
import { readRedisCredentials } from '../../io/redis/credentials.ts'
import { type FileLock, lockStore } from '../../io/store/lock.ts'
import { readOtlpFiles } from '../../io/traces/otlp-files.ts'
import { requireFreePort } from '../../io/world/free-port.ts'
import { findInherited } from '../../io/world/inherited-sockets.ts'
import { readAuditPolicyFile } from '../audit/policy-file.ts'
import { readServingPair } from '../certificates/serving-pair.ts'
import { type Config, portsOf } from '../config/config.ts'
import { healthFiles } from '../health/health-port.ts'
import { adminFiles } from '../insight/admin-port.ts'
import { checkOidcCaFile } from '../object-plane/control-oidc.ts'
import { readGeneratorKinds } from '../protection/protection.ts'

/**
 * Asks whether the ports are free, and reads every file that a setting names. Writes nothing.
 * @throws {UserError} as the part of the gateway that would meet it later
 */
export async function checkStart(config: Config, log: Logger): Promise<void> {
  for (const { address, flag } of portsOf(config)) {
    findInherited(address, flag)
    // Threads share ports, so another process could share them, too.
    await requireFreePort(address, flag)
  }
  checkHosts(config.controlHosts)
  readServingPair(config)
  adminFiles(config, log)
  if (config.healthListen !== undefined) healthFiles(config, log)
  // It says which fields have no effect when it comes into force.
  if (config.auditPolicyFile !== '') readAuditPolicyFile(config.auditPolicyFile, SILENT)
  if (config.auditWebhookConfigFile !== '') new WebhookKubeconfig(config.auditWebhookConfigFile)
  if (config.controlOidcIssuerUrl !== '') checkOidcCaFile(config)
  if (config.redisUrl !== '') readRedisCredentials(config)
  if (config.tracingOtlpEndpoint !== '') readOtlpFiles(config)
  readGeneratorKinds(config.protection.generatorConfigFile)
  await checkKubeconfigs(config, log)
}

/**
 * The lock of the embedded store, which nobody else may hold from here on; undefined = there is no such store.
 * @throws {StoreInUse}
 */
export function claimStore({ source, dataDir }: Config): FileLock | undefined {
  if (source !== 'embedded') return undefined
  const { dir, store } = controlPaths(dataDir)
  makePrivateDirectory(dir)
  return lockStore(store)
}

async function checkKubeconfigs({ source, kubeconfig, context, protection }: Config, log: Logger): Promise<void> {
  const { workloadsKubeconfig, workloadsContext } = protection
  const named = [
    [protection.kubeconfig, protection.context],
    [workloadsKubeconfig, workloadsContext],
  ].filter(([file]) => file !== '')
  for (const [kubeconfigFile = '', name = ''] of source === 'kubernetes' ? [[kubeconfig, context], ...named] : named) {
    await createKubeClient({ kubeconfigFile, log, ...(name !== '' && { context: name }) }).close()
  }
}
