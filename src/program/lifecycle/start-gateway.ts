// Starts a gateway from its settings, once everything that can be wrong with them has been checked.

import { adminFiles } from '../../admin/app/port/admin-port.ts'
import { lockStore } from '../../apiserver/io/store/lock.ts'
import { readAuditPolicyFile } from '../../audit/app/policy-file.ts'
import { WebhookKubeconfig } from '../../audit/io/webhook/webhook-kubeconfig.ts'
import { controlPaths } from '../../gateway/io/listener/control-paths.ts'
import { readRedisCredentials } from '../../gateway/io/redis/credentials.ts'
import { type Logger, SILENT } from '../../kit/api/ports.ts'
import type { FileLock } from '../../kit/io/locks/file-lock.ts'
import { type LineWriter, openLineWriter } from '../../kit/io/logs/line-writer.ts'
import { createLogger } from '../../kit/io/logs/log.ts'
import { RecentLines } from '../../kit/io/logs/recent-lines.ts'
import { requireFreePort } from '../../kit/io/world/free-port.ts'
import { findInherited } from '../../kit/io/world/inherited-sockets.ts'
import { createKubeClient } from '../../kube/io/client.ts'
import { limitFollowedBytes } from '../../kube/io/followed-bytes.ts'
import { checkHosts } from '../../pki/io/control-pki.ts'
import { makePrivateDirectory } from '../../pki/io/pki-files.ts'
import { readServingPair } from '../../process/certificates/serving-pair.ts'
import { type Config, portsOf } from '../../process/config/config.ts'
import { healthFiles } from '../health/health-port.ts'
import { logMemoryPlan, planMemory } from '../memory/memory-plan.ts'
import { checkOidcCaFile } from '../object-plane/control-oidc.ts'
import { loadChecks } from '../subjects/load.ts'
import { warnOfSettings } from '../subjects/settings.ts'
import { SUBJECTS } from '../subjects/subjects.ts'
import { assemble } from './assemble.ts'
import { buildParts } from './build-parts.ts'
import type { GatewayOverrides, RunningGateway } from './running-gateway.ts'

const STDERR = 2

/** @throws {UserError} with one clear line for errors that the operator can fix */
export async function startGateway(asked: Config, given: Partial<GatewayOverrides> = {}): Promise<RunningGateway> {
  const outlets = new AsyncDisposableStack()
  try {
    const recent = new RecentLines(given.logLines ?? closedBy(outlets, openLineWriter(STDERR)))
    const log = given.log ?? createLogger({ level: asked.logLevel, destination: recent })
    const memory = planMemory(asked)
    const { config } = memory
    logMemoryPlan(memory, log)
    limitFollowedBytes(config.maxFollowedBytes)
    await checkStart(config, log)
    const lock = given.source === undefined ? claimStore(config) : undefined
    outlets.defer(() => lock?.release())
    await using begun = new AsyncDisposableStack()
    const start = assemble(await buildParts({ memory, log, recent, given, lock, outlets, begun }))
    // From here on they are components, which stop together.
    begun.move()
    return await start()
  } catch (error) {
    // A failure to close must not hide why the start failed.
    await outlets.disposeAsync().catch(() => undefined)
    throw error instanceof SuppressedError ? error.suppressed : error
  }
}

function closedBy(outlets: AsyncDisposableStack, writer: LineWriter): LineWriter {
  return outlets.adopt(writer, () => writer.close())
}

// Startup errors are detected before anything is written: a gateway running with the same data directory must not pick up the certificates of one
// that never comes up.

/**
 * Checks that the ports are free, and reads every file named by a setting. Writes nothing.
 * @throws {UserError} like the part of the gateway that would fail later
 */
async function checkStart(config: Config, log: Logger): Promise<void> {
  for (const { address, flag } of portsOf(config)) {
    findInherited(address, flag)
    // Threads share ports, so another process could share them, too.
    await requireFreePort(address, flag)
  }
  checkHosts(config.controlHosts)
  readServingPair(config)
  adminFiles(config, log)
  if (config.healthListen !== undefined) healthFiles(config, log)
  // Fields without effect are reported when it comes into force.
  if (config.auditPolicyFile !== '') readAuditPolicyFile(config.auditPolicyFile, SILENT)
  if (config.auditWebhookConfigFile !== '') new WebhookKubeconfig(config.auditWebhookConfigFile)
  if (config.controlOidcIssuerUrl !== '') checkOidcCaFile(config)
  if (config.redisUrl !== '') readRedisCredentials(config)
  for (const check of await loadChecks()) check(config)
  warnOfSettings(config, new Set(SUBJECTS.flatMap(({ settings }) => settings ?? [])), log)
  await checkKubeconfigs(config, log)
}

/**
 * Locks the embedded store against other processes; undefined = there is no such store.
 * @throws {StoreInUse}
 */
function claimStore({ source, dataDir }: Config): FileLock | undefined {
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
