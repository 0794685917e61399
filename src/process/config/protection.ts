// Settings of pod protection: where PodProtectors are stored, and how the ledger works.

import { parseDuration } from '../../kit/core/text/duration.ts'
import { DEFAULT_PROTECTION_SETTINGS, type ProtectionSettings } from '../api/protection-settings.ts'
import { addProblem } from './setting-problems.ts'
import {
  duration,
  file,
  integer,
  optional,
  type Setting,
  settings,
  text,
  toggle,
  type ValuesOf,
  withDefault,
} from './setting-rows.ts'
import { durationBetween, parseSocketText, type ValueParser } from './setting-values.ts'
import type { SettingsReader } from './settings-reader.ts'

const SECOND = 1_000
const MINUTE = 60_000
const HOUR = 3_600_000
/** Below it, a slow list or a new connection would look like a dead cluster. */
const LEAST_STALE_AFTER = 30_000
/** Default of kube-apiserver's --request-timeout, and so the duration of a deletion. */
const REQUEST_TIMEOUT = 60_000

/** Names begin with `protection`. */
export const PROTECTION = settings(
  {
    /** Kubeconfig of the core cluster, which holds the PodProtectors; '' = the API server of all other objects. */
    kubeconfig: file('cluster that holds the PodProtectors; default: the API server that holds the other objects'),
    /** Context in `kubeconfig`; '' = its current one. */
    context: text('<name>', '', 'context in --protection-kubeconfig; default: its current one'),
    /** `host:port` of the admission webhook for clusters; undefined = not opened. */
    listen: optional(
      '<host:port>',
      parseSocketText,
      'address of the admission webhook that clusters call for deletions that bypass the gateway; default: none',
    ),
    /** Workloads for which PodProtectors are generated; '' = none. */
    generatorConfigFile: file(
      'YAML file with the workloads for which PodProtectors are generated; default: none are generated',
      {
        setting: 'generatorConfig',
      },
    ),
    /** Kubeconfig of the cluster with these workloads; '' = the core cluster. */
    workloadsKubeconfig: file('cluster that holds these workloads; default: the one that holds the PodProtectors'),
    workloadsContext: text('<name>', '', 'context in --protection-workloads-kubeconfig; default: its current one'),
    /** Whether metrics have a namespace label, or a user label. */
    metricsByNamespace: toggle(false, 'whether metrics of pod protection have a label for the namespace'),
    metricsByUser: toggle(
      false,
      'whether metrics of evaluated deletions have a label for the user; all nodes count as one user',
    ),
  },
  'protection',
)

/** Settings of the ledger. Names begin with `protection`. */
export const PROTECTION_LEDGER = settings(
  {
    maxConcurrentLag: integer(
      '0',
      0,
      1_000_000,
      'maximum number of deletions of one PodProtector that are admitted but not observed yet; 0: no limit',
    ),
    compactThreshold: integer(
      '100',
      1,
      5_000,
      'maximum number of deletions that a PodProtector records individually; older ones are merged',
    ),
    aggregationRateMs: duration(
      '1s',
      0,
      HOUR,
      'delay from a pod event until the pods of its PodProtectors are counted again',
    ),
    staleAfterMs: withDefault(
      '<duration>',
      '0s',
      zeroOr(durationBetween(LEAST_STALE_AFTER, 24 * HOUR)),
      0,
      'how long a cluster may be silent before its pods count as gone; 0s: forever',
    ),
    reservationTimeoutMs: duration(
      '2m',
      SECOND,
      HOUR,
      'how long a deletion that was admitted but has not happened counts; must not be shorter than timeoutSeconds and the ' +
        '--request-timeout of the kube-apiservers (1m)',
    ),
    clockSkewMs: duration(
      '2s',
      0,
      10 * MINUTE,
      'how far the clocks of clusters and of the gateway may differ beyond what was measured',
    ),
    batchIntervalMs: duration(
      '75ms',
      0,
      10 * SECOND,
      'minimum time between two writes to one PodProtector; deletions that arrive in between share one write',
    ),
  },
  'protection',
)

export interface ProtectionConfig extends ValuesOf<typeof PROTECTION> {
  readonly settings: ProtectionSettings
}

export function readProtection(reader: SettingsReader): ProtectionConfig {
  const settings = Object.freeze({ ...DEFAULT_PROTECTION_SETTINGS, ...reader.read(PROTECTION_LEDGER) })
  return Object.freeze({ ...reader.read(PROTECTION), settings })
}

/** `0s`, or what `parse` accepts. */
function zeroOr(parse: ValueParser<number>): ValueParser<number> {
  return (raw) => {
    if (parseDuration(String(raw).trim()) === 0) return { value: 0 }
    const parsed = parse(raw)
    return 'value' in parsed ? parsed : { ...parsed, fix: `${parsed.fix}; 0s switches it off` }
  }
}

/** Errors and warnings about combinations of settings. */
export function checkProtection(
  config: ProtectionConfig,
  source: 'embedded' | 'files' | 'kubernetes',
  reader: SettingsReader,
): void {
  const table = PROTECTION
  const needs = (at: Setting, value: string, other: Setting, otherValue: string): void => {
    if (value === '' || otherValue !== '') return
    addProblem(reader, at, `is given without ${other.flag}`, `give ${other.flag} too, or remove it`)
  }
  const { kubeconfig, generatorConfigFile, workloadsKubeconfig } = config
  needs(table.context, config.context, table.kubeconfig, kubeconfig)
  const workloads = table.workloadsKubeconfig
  needs(table.workloadsContext, config.workloadsContext, workloads, workloadsKubeconfig)
  needs(workloads, workloadsKubeconfig, table.generatorConfigFile, generatorConfigFile)
  if (source === 'files' && kubeconfig === '') {
    const fix = `give ${table.kubeconfig.flag}, or another --source`
    const message = 'needs PodProtectors, and with --source files no API server holds them'
    if (config.listen !== undefined) addProblem(reader, table.listen, message, fix)
    if (generatorConfigFile !== '') addProblem(reader, table.generatorConfigFile, message, fix)
  }
  if (source === 'embedded' && kubeconfig === '' && workloadsKubeconfig === '' && generatorConfigFile !== '') {
    const fix = `name the cluster that has them: ${workloads.flag} or ${table.kubeconfig.flag}`
    addProblem(reader, table.generatorConfigFile, 'finds no workloads: the embedded API server holds none', fix)
  }
  warnOfTimes(config.settings, reader)
}

function warnOfTimes(settings: ProtectionSettings, reader: SettingsReader): void {
  const { staleAfterMs, aggregationRateMs, clockSkewMs, reservationTimeoutMs } = settings
  const warn = (at: Setting, text: string): void => void reader.warnings.push(`${reader.where(at)}: ${text}`)
  const { staleAfterMs: stale, reservationTimeoutMs: timeout } = PROTECTION_LEDGER
  // A live cluster writes its time three times in this period.
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
