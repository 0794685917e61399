// The admin listener with all of its routes.

import type { AdminState, MetricsText } from '../../admin/routes.ts'
import type { Logger } from '../../api/ports/ports.ts'
import type { LineWriter } from '../../io/logs/line-writer.ts'
import type { RecentLines } from '../../io/logs/recent-lines.ts'
import { VERSION } from '../../io/program/build.ts'
import type { Config } from '../config/config.ts'
import type { Dashboard } from '../dashboard/dashboard.ts'
import { AdminPort } from '../insight/admin-port.ts'
import type { KnownReplicas } from '../insight/known-replicas.ts'
import { KnownSecrets, type Redaction } from '../insight/known-secrets.ts'
import type { LogLevels } from '../insight/log-levels.ts'
import { Profiles } from '../insight/profiles.ts'
import { insightRoutes } from '../insight/routes.ts'
import { supportBundleRoute } from '../insight/support-bundle.ts'
import type { ObjectPlane } from '../object-plane/object-plane.ts'
import type { WiredGateway } from '../wiring/wire.ts'

export interface AdminListenerDeps {
  readonly config: Config
  readonly parts: WiredGateway
  readonly plane: Pick<ObjectPlane, 'adminLogin'>
  readonly log: Logger
  /** Lines of the audit log; undefined = switched off. */
  readonly audit: LineWriter | undefined
  readonly metrics: MetricsText
  readonly checks: Pick<AdminState, 'live' | 'ready'>
  readonly replicas: KnownReplicas
  readonly logLevels: LogLevels
  readonly recent: RecentLines
  readonly dashboard: Dashboard
  /** What is in force, secrets included: it is redacted here. */
  describe(): Promise<object>
}

/** @throws {UserError} when it cannot be opened */
export async function openAdminListener(deps: AdminListenerDeps): Promise<AdminPort> {
  const { config, parts, plane, log, audit, metrics, checks, replicas, logLevels, recent, dashboard, describe } = deps
  const secrets = new KnownSecrets(config, parts.clusters)
  let port: AdminPort | undefined
  const redaction = (): Redaction => secrets.redaction([port?.token ?? ''])
  const profiles = new Profiles(parts.pool)
  const { platform, arch } = process
  port = await AdminPort.open({
    config,
    login: plane.adminLogin,
    failures: parts.failures,
    log,
    audit: audit && ((line) => audit.write(line)),
    metrics,
    routes: [
      ...insightRoutes({ ...parts, replicas, config, log, logLevels, profiles }),
      supportBundleRoute({
        config,
        version: { version: VERSION, node: process.version, platform, arch },
        describe,
        metrics,
        recentLog: () => recent.text(),
        profiles,
        redaction,
      }),
      ...dashboard.routes,
    ],
    state: { ...checks, describe: async () => Object(redaction().object(await describe())) },
  })
  return port
}
