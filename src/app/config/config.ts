// The settings of the process: one table, read from flags, PORTCULLIS_* variables and a YAML file, in this order of
// precedence. All errors are reported at once, each with its origin, the value and the fix.

import { type ListenAddress, parseSocketAddress } from '../../core/cluster/listen-address.ts'
import { ADMIN, checkAdmin } from './admin.ts'
import { AUDIT, checkAudit } from './audit.ts'
import { AUDIT_WEBHOOK } from './audit-webhook.ts'
import { CLIENT_LIMITS } from './client-limits.ts'
import { CONTROL_OIDC, checkControlOidc } from './control-oidc.ts'
import { checkHealth, HEALTH } from './health.ts'
import { checkListeners, type Listeners } from './listen-checks.ts'
import { MEMORY, type MemoryConfig, readMemory } from './memory.ts'
import { checkObjects, OBJECTS, type ObjectsConfig, readObjects } from './objects.ts'
import { checkProtection, PROTECTION, PROTECTION_LEDGER, type ProtectionConfig, readProtection } from './protection.ts'
import { checkReplicas, REPLICAS } from './replicas.ts'
import { checkServing, SERVING } from './serving.ts'
import { file, nameRow, type Setting, type ValuesOf } from './setting-rows.ts'
import { type SettingError, type SettingsInput, SettingsReader } from './settings-reader.ts'
import { checkTracing, TRACING } from './tracing.ts'

/** Settings that are read as they are. */
const PLAIN = {
  ...CONTROL_OIDC,
  ...REPLICAS,
  ...SERVING,
  ...CLIENT_LIMITS,
  ...AUDIT,
  ...AUDIT_WEBHOOK,
  ...ADMIN,
  ...HEALTH,
  ...TRACING,
}

/** What `serve` runs with. Frozen. */
export interface Config extends ObjectsConfig, MemoryConfig, ValuesOf<typeof PLAIN> {
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

/** The headings of help, in its order, with the name by which each is asked for. */
const GROUPS: readonly (readonly [
  name: string,
  heading: string,
  tables: readonly Readonly<Record<string, Setting>>[],
])[] = [
  ['objects', 'Objects and their API server', [OBJECTS]],
  ['oidc', 'Login to the embedded API server by OpenID Connect', [CONTROL_OIDC]],
  ['replicas', 'Replicas and limits that they share', [REPLICAS]],
  ['serving', 'Serving', [SERVING]],
  ['limits', 'Limits for clients', [CLIENT_LIMITS, MEMORY]],
  ['audit', 'Audit', [AUDIT, AUDIT_WEBHOOK]],
  ['admin', 'Admin and health listeners', [ADMIN, HEALTH]],
  ['tracing', 'Traces', [TRACING]],
  ['protection', 'Pod protection', [PROTECTION, PROTECTION_LEDGER]],
]

/** A setting under its heading. */
export interface GroupedSetting extends Setting {
  readonly group: string
  readonly heading: string
}

/** Every setting, in the order of help and documentation. */
export const SETTINGS: readonly GroupedSetting[] = GROUPS.flatMap(([group, heading, tables]) =>
  tables.flatMap((table) => Object.values(table).map((row): GroupedSetting => ({ ...row, group, heading }))),
)

/** The setting that names the configuration file; a flag and a variable only. */
export const CONFIG_FILE: Setting<string> = nameRow(
  'config',
  file('YAML file of settings, keys as the flags in camelCase'),
)

/** Throws a ConfigError that holds every error. */
export function loadConfig(input: SettingsInput): Config {
  const reader = new SettingsReader(input, SETTINGS, CONFIG_FILE)
  const values: Omit<Config, 'warnings'> = {
    ...readObjects(reader),
    ...reader.read(PLAIN),
    ...readMemory(reader),
    protection: readProtection(reader),
  }
  checkObjects(values, reader)
  checkControlOidc(values, values.source, reader)
  checkReplicas(values, reader)
  checkServing(values, reader)
  const isRecorded = values.auditLogPath !== '' || values.auditWebhookConfigFile !== ''
  checkAudit(values, [SERVING.auditLogPath, AUDIT_WEBHOOK.auditWebhookConfigFile], isRecorded, reader)
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
    listen: { setting: SERVING.listen, addresses: listen },
    admin: { setting: SERVING.adminListen, address: readAddress(adminListen) },
    others: [
      ...(source === 'files' ? [] : [{ setting: OBJECTS.controlListen, address: controlListen }]),
      { setting: HEALTH.healthListen, address: healthListen },
      { setting: PROTECTION.listen, address: readAddress(protection.listen ?? '') },
    ],
  }
}

function readAddress(text: string): ListenAddress | undefined {
  const address = parseSocketAddress(text)
  return 'error' in address ? undefined : address
}
