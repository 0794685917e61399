// When events of the audit log and of its webhook are truncated. Names and defaults are kube-apiserver's.

import { addProblem } from './setting-problems.ts'
import { bytes, type Row, settings, toggle, type ValuesOf } from './setting-rows.ts'
import type { SettingsReader } from './settings-reader.ts'

const LEAST_BYTES = 1024
const MOST_EVENT_BYTES = 64 * 1024 * 1024
const MOST_BATCH_BYTES = 64 * 1024 * 1024

export const AUDIT_TRUNCATION = settings({
  auditLogTruncateEnabled: enabled('the audit log'),
  /** Bytes; of no effect, as in kube-apiserver: a file takes one event after the other. */
  auditLogTruncateMaxBatchSize: bytes(
    '10485760',
    LEAST_BYTES,
    MOST_BATCH_BYTES,
    'accepted without effect: events are written one by one',
  ),
  auditLogTruncateMaxEventSize: maxEventSize(),
  auditWebhookTruncateEnabled: enabled('the audit webhook'),
  /** Bytes. */
  auditWebhookTruncateMaxBatchSize: bytes(
    '10485760',
    LEAST_BYTES,
    MOST_BATCH_BYTES,
    'largest request to the webhook, beside some hundred bytes; larger batches are split',
  ),
  auditWebhookTruncateMaxEventSize: maxEventSize(),
})

export type AuditTruncationConfig = ValuesOf<typeof AUDIT_TRUNCATION>

function enabled(what: string): Row<boolean> {
  return toggle(false, `whether large events for ${what} lose their bodies`)
}

function maxEventSize(): Row<number> {
  const help = 'largest event; a larger one loses its bodies, and is dropped if it is too large even so'
  return bytes('102400', LEAST_BYTES, MOST_EVENT_BYTES, help)
}

/** Errors in combinations of settings, where truncation is enabled. */
export function checkAuditTruncation(config: AuditTruncationConfig, reader: SettingsReader): void {
  const table = AUDIT_TRUNCATION
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
