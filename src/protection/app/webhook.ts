// Wires the pod protection webhook to the ledger, the cells and their clients: for deletions that bypass the gateway.

import type { RevocationCheck } from '../../apiserver/access/revoked-credentials.ts'
import type { PortAdmission } from '../../gateway/io/listener/connections.ts'
import { tlsPolicy } from '../../gateway/io/listener/tls-policy.ts'
import type { JsonObject } from '../../kit/api/json/json-object.ts'
import type { Clock, Logger } from '../../kit/api/ports.ts'
import type { RequestHandler } from '../../kit/api/stream.ts'
import type { ListenAddress } from '../../kit/core/listen-address.ts'
import { PODS } from '../../kube/api/kinds/foreign-kinds.ts'
import type { ObjectClient } from '../../kube/api/object-client.ts'
import { isMissing } from '../../kube/api/status.ts'
import type { Config } from '../../process/config/config.ts'
import type { ProtectionLedger } from '../controllers/ledger/ledger.ts'
import { createProtectionWebhook, type ProtectionWebhookDeps } from '../webhooks/webhook.ts'
import type { ProtectionCells } from './cells.ts'
import { ProtectionPort } from './port.ts'

export interface WebhookDeps {
  readonly listen: ListenAddress
  readonly config: Config
  readonly ledger: ProtectionLedger
  readonly cells: ProtectionCells
  /** undefined = no list of revoked credentials. */
  readonly revoked: RevocationCheck | undefined
  /** Admission of clients, shared with other ports. Default: limits of this port alone. */
  readonly admission?: PortAdmission
  readonly clock: Clock
  readonly log: Logger
  readonly onReview: NonNullable<ProtectionWebhookDeps['onReview']>
}

/** Does not open the port yet. @throws {UserError} if its certificate or its CA is unusable */
export function createWebhook(deps: WebhookDeps): {
  readonly port: ProtectionPort
  readonly handler: RequestHandler
} {
  const { listen, config, ledger, cells, revoked, admission, clock, log, onReview } = deps
  const { controlHosts: hosts, dataDir } = config
  const tls = tlsPolicy(config.tlsMinVersion, config.tlsCipherSuites)
  const port = new ProtectionPort({ listen, hosts, dataDir, revoked, tls, admission, log })
  const handler = createProtectionWebhook({
    gate: ledger,
    cell: (id) => {
      const protection = cells.protection(id)
      return protection === undefined ? undefined : { protection }
    },
    getPods: (cell, namespace, name) => podsOfName(cells.clients(cell), namespace, name),
    authenticate: port.authenticate,
    ready: () => ledger.knowsProtectors,
    onReview,
    clock,
    log,
  })
  return { port, handler }
}

/**
 * Pods with one name in the clusters of a cell, each once; several only if these are different clusters.
 * @throws {StatusError} (rejects) NotFound if none has one; any error that kept one from responding
 */
async function podsOfName(
  clients: readonly ObjectClient[],
  namespace: string,
  name: string,
): Promise<readonly JsonObject[]> {
  if (clients.length === 0) throw new Error('there is no such cell')
  const pods: JsonObject[] = []
  let missing: unknown
  for (const answer of await Promise.allSettled(clients.map((client) => client.get(PODS, { namespace, name })))) {
    if (answer.status === 'fulfilled') pods.push(answer.value)
    else if (isMissing(answer.reason, name)) missing = answer.reason
    else throw answer.reason
  }
  if (pods.length === 0) throw missing
  return pods
}
