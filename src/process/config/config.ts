// The settings of the process: one table, read from flags, PORTCULLIS_* variables and a YAML file, in this order of precedence. All errors are
// reported at once, each with its origin, the value and the fix.

import { formatListenAddress, type ListenAddress, parseSocketAddress } from '../../kit/core/listen-address.ts'
import { ADMIN, checkAdmin, checkHealth, HEALTH } from './admin.ts'
import { AUDIT, AUDIT_WEBHOOK, checkAudit } from './audit.ts'
import { CLIENT_LIMITS, MEMORY, type MemoryConfig, readMemory } from './client-limits.ts'
import { CONTROL_OIDC, checkControlOidc } from './control-oidc.ts'
import { checkObjects, OBJECTS, type ObjectsConfig, readObjects } from './objects.ts'
import { checkProtection, PROTECTION, PROTECTION_LEDGER, type ProtectionConfig, readProtection } from './protection.ts'
import { checkReplicas, REPLICAS } from './replicas.ts'
import { checkServing, SERVING } from './serving.ts'
import { checkSessionRecording, SESSION_RECORDING } from './session-recording.ts'
import { addProblem } from './setting-problems.ts'
import { file, nameRow, type Setting, type ValuesOf } from './setting-rows.ts'
import { type SettingError, type SettingsInput, SettingsReader } from './settings-reader.ts'
import { checkTracing, TRACING } from './tracing.ts'

/** Settings that are used as read. */
const PLAIN = {
  ...CONTROL_OIDC,
  ...REPLICAS,
  ...SERVING,
  ...CLIENT_LIMITS,
  ...AUDIT,
  ...AUDIT_WEBHOOK,
  ...SESSION_RECORDING,
  ...ADMIN,
  ...HEALTH,
  ...TRACING,
}

/** Configuration of `serve`. Frozen. */
export interface Config extends ObjectsConfig, MemoryConfig, ValuesOf<typeof PLAIN> {
  readonly protection: ProtectionConfig
  /** Suspicious but not fatal; one line each. */
  readonly warnings: readonly string[]
}

/** All errors; `message` has one line for each. */
export class ConfigError extends Error {
  readonly problems: readonly SettingError[]

  constructor(problems: readonly SettingError[]) {
    super(problems.map((problem) => `${problem.where}: ${problem.message}; ${problem.fix}`).join('\n'))
    this.name = 'ConfigError'
    this.problems = problems
  }
}

/** Headings of the help, in order, with the name by which each can be requested. */
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
  ['sessions', 'Recordings of sessions', [SESSION_RECORDING]],
  ['admin', 'Admin and health listeners', [ADMIN, HEALTH]],
  ['tracing', 'Traces', [TRACING]],
  ['protection', 'Pod protection', [PROTECTION, PROTECTION_LEDGER]],
]

/** A setting with its heading. */
export interface GroupedSetting extends Setting {
  readonly group: string
  readonly heading: string
}

/** Every setting, in the order of help and documentation. */
export const ALL_SETTINGS: readonly GroupedSetting[] = GROUPS.flatMap(([group, heading, tables]) =>
  tables.flatMap((table) => Object.values(table).map((row): GroupedSetting => ({ ...row, group, heading }))),
)

/** The setting that names the configuration file; only a flag and a variable. */
export const CONFIG_FILE: Setting<string> = nameRow(
  'config',
  file('YAML file of settings; its keys are the flags in camelCase'),
)

/** @throws a ConfigError with all errors */
export function loadConfig(input: SettingsInput): Config {
  const reader = new SettingsReader(input, ALL_SETTINGS, CONFIG_FILE)
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
  checkSessionRecording(values, reader)
  checkAdmin(values, listenersOf(values).admin, values.source, reader)
  checkHealth(values, values.source, reader)
  checkTracing(values, reader)
  checkProtection(values.protection, values.source, reader)
  checkListeners(listenersOf(values), reader)
  if (reader.problems.length > 0) throw new ConfigError(reader.problems)
  return Object.freeze({ ...values, warnings: Object.freeze(reader.warnings) })
}

/** A port opened by the process, and its flag. */
export interface NamedPort {
  readonly address: ListenAddress
  readonly flag: string
}

/** All ports opened at startup. */
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

// Listening addresses of the process: all different.
interface Listener {
  readonly setting: Setting
  /** undefined = not opened, or invalid, which was already reported. */
  readonly address: ListenAddress | undefined
}

interface Listeners {
  readonly listen: { readonly setting: Setting; readonly addresses: readonly ListenAddress[] }
  readonly admin: Listener
  readonly others: readonly Listener[]
}

function checkListeners({ listen, admin, others }: Listeners, reader: SettingsReader): void {
  const problem = (at: Setting, message: string): void => {
    addProblem(reader, at, message, 'give it a port of its own')
  }
  const seen = new Set<string>()
  for (const address of listen.addresses) {
    const text = formatListenAddress(address)
    if ((address.port !== 0 || address.inherited !== undefined) && seen.has(text)) {
      addProblem(reader, listen.setting, `${text} is given twice`, 'remove one')
    }
    seen.add(text)
    for (const { setting, address: other } of [...others, admin]) {
      if (other === undefined || !overlap(address, other)) continue
      problem(setting, `${formatListenAddress(other)} is also in ${listen.setting.flag} as ${text}`)
    }
  }
  const single = [admin, ...others]
  for (const [index, { setting, address }] of single.entries()) {
    const before = single.slice(0, index).find((other) => sameAddress(other.address, address))
    if (before === undefined || address === undefined) continue
    problem(setting, `${formatListenAddress(address)} is also ${before.setting.flag}`)
  }
}

function sameAddress(a: ListenAddress | undefined, b: ListenAddress | undefined): boolean {
  return a !== undefined && b !== undefined && overlap(a, b)
}

function overlap(a: ListenAddress, b: ListenAddress): boolean {
  return a.port !== 0 && a.port === b.port && (a.host === b.host || isWildcard(a.host) || isWildcard(b.host))
}

function isWildcard(host: string): boolean {
  return host === '0.0.0.0' || host === '::'
}
