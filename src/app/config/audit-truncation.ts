// When events of the audit log and of its webhook are truncated. Names and defaults are kube-apiserver's.

import { addProblem } from './setting-problems.ts'
import { bytesBetween, parseSwitch } from './setting-values.ts'
import { type Setting, type SettingsReader, setting } from './settings-reader.ts'

export interface AuditTruncationConfig {
  readonly auditLogTruncateEnabled: boolean
  /** Bytes; of no effect, as in kube-apiserver: a file takes one event after the other. */
  readonly auditLogTruncateMaxBatchSize: number
  /** Bytes. */
  readonly auditLogTruncateMaxEventSize: number
  readonly auditWebhookTruncateEnabled: boolean
  /** Bytes. */
  readonly auditWebhookTruncateMaxBatchSize: number
  /** Bytes. */
  readonly auditWebhookTruncateMaxEventSize: number
}

const LEAST_BYTES = 1024
const MOST_EVENT_BYTES = 64 * 1024 * 1024
const MOST_BATCH_BYTES = 64 * 1024 * 1024

/** Rows of the table of settings, in the order of help. */
export const AUDIT_TRUNCATION_TABLE: {
  readonly [Name in keyof AuditTruncationConfig]: Setting<AuditTruncationConfig[Name]>
} = {
  auditLogTruncateEnabled: enabled('auditLogTruncateEnabled', 'the audit log'),
  auditLogTruncateMaxBatchSize: setting(
    'auditLogTruncateMaxBatchSize',
    '<bytes>',
    '10485760',
    bytesBetween(LEAST_BYTES, MOST_BATCH_BYTES),
    'accepted without effect: events are written one by one',
  ),
  auditLogTruncateMaxEventSize: maxEventSize('auditLogTruncateMaxEventSize'),
  auditWebhookTruncateEnabled: enabled('auditWebhookTruncateEnabled', 'the audit webhook'),
  auditWebhookTruncateMaxBatchSize: setting(
    'auditWebhookTruncateMaxBatchSize',
    '<bytes>',
    '10485760',
    bytesBetween(LEAST_BYTES, MOST_BATCH_BYTES),
    'largest request to the webhook, beside some hundred bytes; larger batches are split',
  ),
  auditWebhookTruncateMaxEventSize: maxEventSize('auditWebhookTruncateMaxEventSize'),
}

function enabled(key: string, of: string): Setting<boolean> {
  const help = `whether large events for ${of} lose their bodies`
  return setting(key, '[bool]', 'false', parseSwitch, help)
}

function maxEventSize(key: string): Setting<number> {
  const help = 'largest event; a larger one loses its bodies, and is dropped if it is too large even so'
  return setting(key, '<bytes>', '102400', bytesBetween(LEAST_BYTES, MOST_EVENT_BYTES), help)
}

export function readAuditTruncation(reader: SettingsReader): AuditTruncationConfig {
  const table = AUDIT_TRUNCATION_TABLE
  return {
    auditLogTruncateEnabled: reader.take(table.auditLogTruncateEnabled, false),
    auditLogTruncateMaxBatchSize: reader.take(table.auditLogTruncateMaxBatchSize, 0),
    auditLogTruncateMaxEventSize: reader.take(table.auditLogTruncateMaxEventSize, 0),
    auditWebhookTruncateEnabled: reader.take(table.auditWebhookTruncateEnabled, false),
    auditWebhookTruncateMaxBatchSize: reader.take(table.auditWebhookTruncateMaxBatchSize, 0),
    auditWebhookTruncateMaxEventSize: reader.take(table.auditWebhookTruncateMaxEventSize, 0),
  }
}

/** Errors in combinations of settings, where truncation is enabled. */
export function checkAuditTruncation(config: AuditTruncationConfig, reader: SettingsReader): void {
  const table = AUDIT_TRUNCATION_TABLE
  const rows = [
    [
      config.auditLogTruncateEnabled && config.auditLogTruncateMaxEventSize > config.auditLogTruncateMaxBatchSize,
      table.auditLogTruncateMaxEventSize,
      table.auditLogTruncateMaxBatchSize,
    ],
    [
      config.auditWebhookTruncateEnabled &&
        config.auditWebhookTruncateMaxEventSize > config.auditWebhookTruncateMaxBatchSize,
      table.auditWebhookTruncateMaxEventSize,
      table.auditWebhookTruncateMaxBatchSize,
    ],
  ] as const
  for (const [isWrong, event, batch] of rows) {
    if (isWrong) addProblem(reader, event, `is larger than ${batch.flag}`, `write a larger ${batch.flag}`)
  }
}
