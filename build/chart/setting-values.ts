// Settings of `serve` as values of the chart: all that the chart does not decide by itself. A new row of the table of settings is a new value.

import { LOG_LEVELS } from '../../src/kit/io/logs/log.ts'
import { ALL_SETTINGS } from '../../src/process/config/config.ts'
import type { Setting } from '../../src/process/config/setting-rows.ts'
import type { Value, ValueSchema } from './values-table.ts'

/** Those that follow from other values, or have no meaning in a pod. */
export const CHART_SETTINGS: ReadonlySet<string> = new Set([
  'source',
  'configDir',
  'controlListen',
  'controlHost',
  'storeKeyFile',
  'installCrds',
  'replicaName',
  'redisUrl',
  'redisPasswordFile',
  'expectedReplicas',
  'listen',
  'proxyProtocolFrom',
  'proxyProtocolOthers',
  'adminListen',
  'adminAdvertise',
  'adminTlsCertFile',
  'adminTlsPrivateKeyFile',
  'healthListen',
  'healthTlsCertFile',
  'healthTlsPrivateKeyFile',
  'metricsTokenFile',
  'dataDir',
  'drainTimeout',
  'shutdownDelay',
  'tlsCertFile',
  'tlsPrivateKeyFile',
  'protectionListen',
  'protectionGeneratorConfig',
])

/** By their names in camelCase, as in the settings' own file. */
export function settingValues(): Record<string, Value> {
  const rest = ALL_SETTINGS.filter(({ name }) => !CHART_SETTINGS.has(name))
  return Object.fromEntries(rest.map((setting): [string, Value] => [setting.name, settingValue(setting)]))
}

/** What a template gives where the value is absent. */
const DEFAULTS_OF_THE_CHART: Readonly<Record<string, string>> = { maxConnectionAge: '`4m` with `kubernetes`' }

function settingValue(setting: Setting): Value {
  const { name, flag, defaultText } = setting
  const chart = name in DEFAULTS_OF_THE_CHART ? `; of the chart: ${DEFAULTS_OF_THE_CHART[name]}` : ''
  const meaning = `\`${flag}\`${defaultText === '' ? '' : `; its default: \`${defaultText}\``}${chart}`
  return { fallback: undefined, meaning, schema: schemaOf(setting) }
}

const DURATION = '^([0-9]+([.][0-9]+)?(ns|us|ms|s|m|h))+$|^0$'
/** From 0 to 0.02, as text: what `--set` makes of it. */
const FRACTION = '^(0|0?[.]0+|0?[.]0[01][0-9]*|0?[.]020*)$'

/** A default and a description would say what the gateway's own table says. */
function schemaOf({ argument, repeatable }: Setting): ValueSchema {
  if (repeatable) return { type: 'array', minItems: 1, items: { type: 'string', minLength: 1 } }
  if (argument === '<n>') return { type: 'integer', minimum: 0 }
  if (argument === '[bool]') return { type: 'boolean' }
  if (argument === '<bytes>') return { type: ['integer', 'string'] }
  if (argument === '<fraction>') return { type: ['number', 'string'], minimum: 0, maximum: 0.02, pattern: FRACTION }
  if (argument === '<duration>') return { type: 'string', pattern: DURATION }
  if (argument === '<level>') return { type: 'string', enum: LOG_LEVELS }
  return { type: 'string', minLength: 1 }
}
