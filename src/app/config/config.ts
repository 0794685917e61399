// The settings of the process: one table, read from flags, PORTCULLIS_* variables and a YAML file, in this order of
// precedence. All errors are reported at once, each with its origin, the value and the fix.

import { type ListenAddress, parseSocketAddress } from '../../core/cluster/listen-address.ts'
import { ADMIN_TABLE, type AdminConfig, checkAdmin, readAdmin } from './admin.ts'
import { AUDIT_TABLE, type AuditConfig, checkAudit, readAudit } from './audit.ts'
import {
  AUDIT_TRUNCATION_TABLE,
  type AuditTruncationConfig,
  checkAuditTruncation,
  readAuditTruncation,
} from './audit-truncation.ts'
import { AUDIT_WEBHOOK_TABLE, type AuditWebhookConfig, readAuditWebhook } from './audit-webhook.ts'
import { CLIENT_LIMITS_TABLE, type ClientLimitsConfig, readClientLimits } from './client-limits.ts'
import { CONTROL_OIDC_TABLE, type ControlOidcConfig, checkControlOidc, readControlOidc } from './control-oidc.ts'
import { checkHealth, HEALTH_TABLE, type HealthConfig, readHealth } from './health.ts'
import { checkListeners, type Listeners } from './listen-checks.ts'
import { MEMORY_TABLE, type MemoryConfig, readMemory } from './memory.ts'
import { checkObjects, OBJECTS_TABLE, type ObjectsConfig, readObjects } from './objects.ts'
import { checkProtection, PROTECTION_TABLE, type ProtectionConfig, readProtection } from './protection.ts'
import { checkReplicas, REPLICAS_TABLE, type ReplicasConfig, readReplicas } from './replicas.ts'
import { checkServing, readServing, SERVING_TABLE, type ServingConfig } from './serving.ts'
import { parseText } from './setting-values.ts'
import { type Setting, type SettingError, type SettingsInput, SettingsReader, setting } from './settings-reader.ts'
import { checkTracing, readTracing, TRACING_TABLE, type TracingConfig } from './tracing.ts'

/** What `serve` runs with. Frozen. */
export interface Config
  extends ObjectsConfig,
    ControlOidcConfig,
    ReplicasConfig,
    ServingConfig,
    ClientLimitsConfig,
    MemoryConfig,
    AuditConfig,
    AuditWebhookConfig,
    AuditTruncationConfig,
    AdminConfig,
    HealthConfig,
    TracingConfig {
  readonly protection: ProtectionConfig
  /** What is questionable but does not stop the gateway; one line each. */
  readonly warnings: readonly string[]
}

/** All errors; `message` is one line for each. */
export class ConfigError extends Error {
  readonly problems: readonly SettingError[]

  constructor(problems: readonly SettingError[]) {
    super(problems.map((problem) => `${problem.where}: ${problem.message}; ${problem.fix}`).join('\n'))
    this.name = 'ConfigError'
    this.problems = problems
  }
}

/** Every setting, in the order of help and documentation. */
export const SETTINGS: readonly Setting[] = [
  OBJECTS_TABLE,
  CONTROL_OIDC_TABLE,
  REPLICAS_TABLE,
  SERVING_TABLE,
  CLIENT_LIMITS_TABLE,
  MEMORY_TABLE,
  AUDIT_TABLE,
  AUDIT_WEBHOOK_TABLE,
  AUDIT_TRUNCATION_TABLE,
  ADMIN_TABLE,
  HEALTH_TABLE,
  TRACING_TABLE,
  PROTECTION_TABLE,
].flatMap((table): readonly Setting[] => Object.values(table))

/** The setting that names the configuration file; a flag and a variable only. */
export const CONFIG_FILE: Setting<string> = setting(
  'config',
  '<file>',
  '',
  parseText,
  'YAML file of settings, keys as the flags in camelCase',
)

/** Throws a ConfigError that holds every error. */
export function loadConfig(input: SettingsInput): Config {
  const reader = new SettingsReader(input, SETTINGS, CONFIG_FILE)
  const values: Omit<Config, 'warnings'> = {
    ...readObjects(reader),
    ...readControlOidc(reader),
    ...readReplicas(reader),
    ...readServing(reader),
    ...readClientLimits(reader),
    ...readMemory(reader),
    ...readAudit(reader),
    ...readAuditWebhook(reader),
    ...readAuditTruncation(reader),
    ...readAdmin(reader),
    ...readHealth(reader),
    ...readTracing(reader),
    protection: readProtection(reader),
  }
  checkObjects(values, reader)
  checkControlOidc(values, values.source, reader)
  checkReplicas(values, reader)
  checkServing(values, reader)
  const isRecorded = values.auditLogPath !== '' || values.auditWebhookConfigFile !== ''
  checkAudit(values, [SERVING_TABLE.auditLogPath, AUDIT_WEBHOOK_TABLE.auditWebhookConfigFile], isRecorded, reader)
  checkAuditTruncation(values, reader)
  checkAdmin(values, listenersOf(values).admin, values.source, reader)
  checkHealth(values, values.source, reader)
  checkTracing(values, reader)
  checkProtection(values.protection, values.source, reader)
  checkListeners(listenersOf(values), reader)
  if (reader.problems.length > 0) throw new ConfigError(reader.problems)
  return Object.freeze({ ...values, warnings: Object.freeze(reader.warnings) })
}

/** A port that the process opens, and the flag that names it. */
export interface NamedPort {
  readonly address: ListenAddress
  readonly flag: string
}

/** All that a start opens. */
export function portsOf(config: Omit<Config, 'warnings'>): readonly NamedPort[] {
  const { listen, admin, others } = listenersOf(config)
  const single = [admin, ...others].flatMap(({ setting: { flag }, address }): NamedPort[] =>
    address === undefined ? [] : [{ address, flag }],
  )
  return [...listen.addresses.map((address) => ({ address, flag: listen.setting.flag })), ...single]
}

function listenersOf(values: Omit<Config, 'warnings'>): Listeners {
  const { source, listen, controlListen, adminListen, healthListen, protection } = values
  return {
    listen: { setting: SERVING_TABLE.listen, addresses: listen },
    admin: { setting: SERVING_TABLE.adminListen, address: readAddress(adminListen) },
    others: [
      ...(source === 'files' ? [] : [{ setting: OBJECTS_TABLE.controlListen, address: controlListen }]),
      { setting: HEALTH_TABLE.healthListen, address: healthListen },
      { setting: PROTECTION_TABLE.protectionListen, address: readAddress(protection.listen ?? '') },
    ],
  }
}

function readAddress(text: string): ListenAddress | undefined {
  const address = parseSocketAddress(text)
  return 'error' in address ? undefined : address
}
