// The settings of the audit webhook. Names and defaults are kube-apiserver's.

import { durationBetween, integerBetween, numberBetween, parseSwitch, parseText } from './setting-values.ts'
import { type Setting, type SettingsReader, setting } from './settings-reader.ts'

export interface AuditWebhookConfig {
  /** A kubeconfig; '' = no webhook. */
  readonly auditWebhookConfigFile: string
  readonly auditWebhookInitialBackoffMs: number
  /** Events. */
  readonly auditWebhookBatchBufferSize: number
  /** Events. */
  readonly auditWebhookBatchMaxSize: number
  readonly auditWebhookBatchMaxWaitMs: number
  readonly auditWebhookBatchThrottleEnable: boolean
  /** Batches a second. */
  readonly auditWebhookBatchThrottleQps: number
  readonly auditWebhookBatchThrottleBurst: number
}

const SECOND_MS = 1000
const HOUR_MS = 3_600_000
const MOST_WAITING = 1_000_000
const MOST_IN_BATCH = 100_000
const LEAST_QPS = 0.01
const MOST_QPS = 10_000

/** Rows of the table of settings, in the order of help. */
export const AUDIT_WEBHOOK_TABLE: { readonly [Name in keyof AuditWebhookConfig]: Setting<AuditWebhookConfig[Name]> } = {
  auditWebhookConfigFile: setting(
    'auditWebhookConfigFile',
    '<file>',
    '',
    parseText,
    'kubeconfig of a receiver of audit events (audit.k8s.io/v1 EventList)',
  ),
  auditWebhookInitialBackoffMs: setting(
    'auditWebhookInitialBackoff',
    '<duration>',
    '10s',
    durationBetween(1, HOUR_MS),
    'how long after the first failed attempt a batch of events is sent to the webhook again',
  ),
  auditWebhookBatchBufferSize: setting(
    'auditWebhookBatchBufferSize',
    '<n>',
    '10000',
    integerBetween(1, MOST_WAITING),
    'events that wait for the webhook; more are dropped',
  ),
  auditWebhookBatchMaxSize: setting(
    'auditWebhookBatchMaxSize',
    '<n>',
    '400',
    integerBetween(1, MOST_IN_BATCH),
    'largest number of events in one request to the webhook',
  ),
  auditWebhookBatchMaxWaitMs: setting(
    'auditWebhookBatchMaxWait',
    '<duration>',
    '30s',
    durationBetween(1, HOUR_MS),
    'how long events for the webhook wait for others',
  ),
  auditWebhookBatchThrottleEnable: setting(
    'auditWebhookBatchThrottleEnable',
    '[bool]',
    'true',
    parseSwitch,
    'whether the rate of requests to the webhook is limited',
  ),
  auditWebhookBatchThrottleQps: setting(
    'auditWebhookBatchThrottleQps',
    '<n>',
    '10',
    numberBetween(LEAST_QPS, MOST_QPS),
    'requests to the webhook a second',
  ),
  auditWebhookBatchThrottleBurst: setting(
    'auditWebhookBatchThrottleBurst',
    '<n>',
    '15',
    integerBetween(1, MOST_QPS),
    'requests to the webhook at once, when fewer were sent before',
  ),
}

export function readAuditWebhook(reader: SettingsReader): AuditWebhookConfig {
  const table = AUDIT_WEBHOOK_TABLE
  return {
    auditWebhookConfigFile: reader.take(table.auditWebhookConfigFile, ''),
    auditWebhookInitialBackoffMs: reader.take(table.auditWebhookInitialBackoffMs, SECOND_MS),
    auditWebhookBatchBufferSize: reader.take(table.auditWebhookBatchBufferSize, 1),
    auditWebhookBatchMaxSize: reader.take(table.auditWebhookBatchMaxSize, 1),
    auditWebhookBatchMaxWaitMs: reader.take(table.auditWebhookBatchMaxWaitMs, SECOND_MS),
    auditWebhookBatchThrottleEnable: reader.take(table.auditWebhookBatchThrottleEnable, true),
    auditWebhookBatchThrottleQps: reader.take(table.auditWebhookBatchThrottleQps, 1),
    auditWebhookBatchThrottleBurst: reader.take(table.auditWebhookBatchThrottleBurst, 1),
  }
}
