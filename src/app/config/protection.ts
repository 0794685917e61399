// The settings of pod protection: where PodProtectors live, and how the ledger works.

import {
  DEFAULT_PROTECTION_SETTINGS,
  type ProtectionSettings,
} from '../../core/protection/requests/protection-settings.ts'
import { parseDuration } from '../../core/text/duration.ts'
import { addProblem } from './setting-problems.ts'
import {
  durationBetween,
  integerBetween,
  parseSocketText,
  parseSwitch,
  parseText,
  type ValueParser,
} from './setting-values.ts'
import { type Setting, type SettingsReader, setting } from './settings-reader.ts'

export interface ProtectionConfig {
  readonly settings: ProtectionSettings
  /** Of the core cluster, which holds the PodProtectors; '' = the API server that holds all other objects. */
  readonly kubeconfig: string
  /** In `kubeconfig`; '' = its current one. */
  readonly context: string
  /** `host:port` of the admission webhook for clusters; undefined = it is not opened. */
  readonly listen: string | undefined
  /** The workloads that PodProtectors are generated for; '' = none. */
  readonly generatorConfigFile: string
  /** Of the cluster that holds these workloads; '' = the core cluster. */
  readonly workloadsKubeconfig: string
  readonly workloadsContext: string
  /** Whether metrics have a label for the namespace, or the user. */
  readonly metricsByNamespace: boolean
  readonly metricsByUser: boolean
}

const SECOND = 1_000
const MINUTE = 60_000
const HOUR = 3_600_000
/** Below it a slow list or a new connection would look like a dead cluster. */
const LEAST_STALE_AFTER = 30_000
/** Default of kube-apiserver's --request-timeout: a deletion may take this long. */
const REQUEST_TIMEOUT = 60_000

type TextName =
  | 'protectionKubeconfig'
  | 'protectionContext'
  | 'protectionListen'
  | 'protectionGeneratorConfig'
  | 'protectionWorkloadsKubeconfig'
  | 'protectionWorkloadsContext'
type NumberName =
  | 'protectionMaxConcurrentLag'
  | 'protectionCompactThreshold'
  | 'protectionAggregationRate'
  | 'protectionStaleAfter'
  | 'protectionReservationTimeout'
  | 'protectionClockSkew'
  | 'protectionBatchInterval'
type SwitchName = 'protectionMetricsByNamespace' | 'protectionMetricsByUser'

/** Rows of the table of settings, in the order of help. */
export const PROTECTION_TABLE: Readonly<
  Record<TextName, Setting<string>> & Record<NumberName, Setting<number>> & Record<SwitchName, Setting<boolean>>
> = {
  protectionKubeconfig: setting(
    'protectionKubeconfig',
    '<file>',
    '',
    parseText,
    'cluster that holds the PodProtectors; default: the API server of all the other objects',
  ),
  protectionContext: setting(
    'protectionContext',
    '<name>',
    '',
    parseText,
    'context in --protection-kubeconfig; default: its current one',
  ),
  protectionListen: setting(
    'protectionListen',
    '<host:port>',
    '',
    parseSocketText,
    'address of the admission webhook by which clusters ask about deletions that do not come through the gateway; ' +
      'default: none',
  ),
  protectionGeneratorConfig: setting(
    'protectionGeneratorConfig',
    '<file>',
    '',
    parseText,
    'YAML file of the workloads that PodProtectors are made of; default: none are made',
  ),
  protectionWorkloadsKubeconfig: setting(
    'protectionWorkloadsKubeconfig',
    '<file>',
    '',
    parseText,
    'cluster that holds these workloads; default: the one that holds the PodProtectors',
  ),
  protectionWorkloadsContext: setting(
    'protectionWorkloadsContext',
    '<name>',
    '',
    parseText,
    'context in --protection-workloads-kubeconfig; default: its current one',
  ),
  protectionMaxConcurrentLag: setting(
    'protectionMaxConcurrentLag',
    '<n>',
    '0',
    integerBetween(0, 1_000_000),
    'deletions under one PodProtector that may be allowed before they are seen to happen; 0: no limit',
  ),
  protectionCompactThreshold: setting(
    'protectionCompactThreshold',
    '<n>',
    '100',
    integerBetween(1, 5_000),
    'deletions that a PodProtector remembers one by one; older ones are merged',
  ),
  protectionAggregationRate: setting(
    'protectionAggregationRate',
    '<duration>',
    '1s',
    durationBetween(0, HOUR),
    'delay from a pod event until the pods of its PodProtectors are counted again',
  ),
  protectionStaleAfter: setting(
    'protectionStaleAfter',
    '<duration>',
    '0s',
    zeroOr(durationBetween(LEAST_STALE_AFTER, 24 * HOUR)),
    'how long a cluster may be silent before its pods count as gone; 0s: for ever',
  ),
  protectionReservationTimeout: setting(
    'protectionReservationTimeout',
    '<duration>',
    '2m',
    durationBetween(SECOND, HOUR),
    'how long an allowed deletion that did not happen counts; timeoutSeconds and --request-timeout of the ' +
      'kube-apiservers (1m) must not be longer',
  ),
  protectionClockSkew: setting(
    'protectionClockSkew',
    '<duration>',
    '2s',
    durationBetween(0, 10 * MINUTE),
    'how far the clocks of clusters and of the gateway may differ beyond what was measured',
  ),
  protectionBatchInterval: setting(
    'protectionBatchInterval',
    '<duration>',
    '75ms',
    durationBetween(0, 10 * SECOND),
    'minimum time between two writes to one PodProtector; deletions in between form one batch',
  ),
  protectionMetricsByNamespace: setting(
    'protectionMetricsByNamespace',
    '[bool]',
    'false',
    parseSwitch,
    'whether metrics of pod protection have a label for the namespace',
  ),
  protectionMetricsByUser: setting(
    'protectionMetricsByUser',
    '[bool]',
    'false',
    parseSwitch,
    'whether metrics of evaluated deletions have a label for the user; all nodes count as one user',
  ),
}

/** `0s`, or what `parse` takes. */
function zeroOr(parse: ValueParser<number>): ValueParser<number> {
  return (raw) => {
    if (parseDuration(String(raw).trim()) === 0) return { value: 0 }
    const parsed = parse(raw)
    return 'value' in parsed ? parsed : { ...parsed, fix: `${parsed.fix}; 0s switches it off` }
  }
}

export function readProtection(reader: SettingsReader): ProtectionConfig {
  const table = PROTECTION_TABLE
  const listen = reader.take(table.protectionListen, '')
  return Object.freeze({
    settings: Object.freeze({
      ...DEFAULT_PROTECTION_SETTINGS,
      maxConcurrentLag: reader.take(table.protectionMaxConcurrentLag, 0),
      compactThreshold: reader.take(table.protectionCompactThreshold, 1),
      aggregationRateMs: reader.take(table.protectionAggregationRate, 0),
      staleAfterMs: reader.take(table.protectionStaleAfter, 0),
      reservationTimeoutMs: reader.take(table.protectionReservationTimeout, 0),
      clockSkewMs: reader.take(table.protectionClockSkew, 0),
      batchIntervalMs: reader.take(table.protectionBatchInterval, 0),
    }),
    kubeconfig: reader.take(table.protectionKubeconfig, ''),
    context: reader.take(table.protectionContext, ''),
    listen: listen === '' ? undefined : listen,
    generatorConfigFile: reader.take(table.protectionGeneratorConfig, ''),
    workloadsKubeconfig: reader.take(table.protectionWorkloadsKubeconfig, ''),
    workloadsContext: reader.take(table.protectionWorkloadsContext, ''),
    metricsByNamespace: reader.take(table.protectionMetricsByNamespace, false),
    metricsByUser: reader.take(table.protectionMetricsByUser, false),
  })
}

/** Errors and warnings about combinations of settings. */
export function checkProtection(
  config: ProtectionConfig,
  source: 'embedded' | 'files' | 'kubernetes',
  reader: SettingsReader,
): void {
  const table = PROTECTION_TABLE
  const needs = (at: Setting, value: string, other: Setting, otherValue: string): void => {
    if (value === '' || otherValue !== '') return
    addProblem(reader, at, `is given without ${other.flag}`, `give ${other.flag} too, or remove it`)
  }
  const { kubeconfig, generatorConfigFile, workloadsKubeconfig } = config
  needs(table.protectionContext, config.context, table.protectionKubeconfig, kubeconfig)
  const workloads = table.protectionWorkloadsKubeconfig
  needs(table.protectionWorkloadsContext, config.workloadsContext, workloads, workloadsKubeconfig)
  needs(workloads, workloadsKubeconfig, table.protectionGeneratorConfig, generatorConfigFile)
  if (source === 'files' && kubeconfig === '') {
    const fix = `give ${table.protectionKubeconfig.flag}, or another --source`
    const message = 'needs PodProtectors, and with --source files no API server holds them'
    if (config.listen !== undefined) addProblem(reader, table.protectionListen, message, fix)
    if (generatorConfigFile !== '') addProblem(reader, table.protectionGeneratorConfig, message, fix)
  }
  if (source === 'embedded' && kubeconfig === '' && workloadsKubeconfig === '' && generatorConfigFile !== '') {
    const fix = `name the cluster that has them: ${workloads.flag} or ${table.protectionKubeconfig.flag}`
    addProblem(reader, table.protectionGeneratorConfig, 'finds no workloads: the embedded API server holds none', fix)
  }
  warnOfTimes(config.settings, reader)
}

function warnOfTimes(settings: ProtectionSettings, reader: SettingsReader): void {
  const { staleAfterMs, aggregationRateMs, clockSkewMs, reservationTimeoutMs } = settings
  const warn = (at: Setting, text: string): void => void reader.warnings.push(`${reader.where(at)}: ${text}`)
  const { protectionStaleAfter: stale, protectionReservationTimeout: timeout } = PROTECTION_TABLE
  // A live cluster writes its time every third of this.
  if (staleAfterMs > 0 && (aggregationRateMs > staleAfterMs / 3 || clockSkewMs > staleAfterMs / 3)) {
    warn(
      stale,
      'is less than three times --protection-aggregation-rate or --protection-clock-skew; clusters that are not silent may count as silent',
    )
  }
  if (reservationTimeoutMs < REQUEST_TIMEOUT) {
    warn(timeout, "is less than kube-apiserver's own 1m; a slow deletion may happen after it has stopped counting")
  }
}
