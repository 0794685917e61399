// Settings of the audit log besides its path (policy, event size, file rotation), and of the audit webhook. Names and defaults are kube-apiserver's,
// except for the rotation size, where 0 keeps the audit log's former behaviour, and for truncation, which the size alone enables.

import { MAX_BATCH_BYTES } from '../api/audit-size.ts'
import { addProblem, namesOf } from './setting-problems.ts'
import {
  bytes,
  decimal,
  duration,
  file,
  integer,
  type Row,
  type Setting,
  settings,
  toggle,
  type ValuesOf,
} from './setting-rows.ts'
import type { SettingsReader } from './settings-reader.ts'

const MOST_DAYS = 36_500
const MOST_FILES = 100_000
const MOST_MEBIBYTES = 1_000_000
const MOST_BODY_BYTES = 4 * 1024 * 1024
const LEAST_EVENT_BYTES = 1024
const MOST_EVENT_BYTES = 64 * 1024 * 1024

export const AUDIT = settings({
  /** '' = every request, at level Metadata. */
  auditPolicyFile: file('audit policy (audit.k8s.io/v1); default: every request at level Metadata'),
  /** Limit of one request or response body that the policy records. */
  auditMaxBodyBytes: bytes(
    '102400',
    1024,
    MOST_BODY_BYTES,
    'largest body that the levels Request and RequestResponse record; a larger one is replaced by an annotation',
  ),
  /** Days; 0 = unlimited. */
  auditLogMaxage: integer('366', 0, MOST_DAYS, 'how long rotated files of the audit log are kept; 0: forever', {
    argument: '<days>',
  }),
  /** Files; 0 = unlimited. */
  auditLogMaxbackup: integer('100', 0, MOST_FILES, 'how many rotated files of the audit log are kept; 0: any number'),
  /** Mebibytes; 0 = the file is not rotated. */
  auditLogMaxsize: integer('0', 0, MOST_MEBIBYTES, 'size at which the file of the audit log is rotated; 0: never', {
    argument: '<MiB>',
  }),
  auditLogCompress: toggle(false, 'whether rotated files of the audit log are compressed by gzip'),
  /** Bytes; 0 = unlimited. */
  auditLogTruncateMaxEventSize: maxEventSize('the audit log', MOST_EVENT_BYTES, [
    'auditLogTruncateEnabled',
    'auditLogTruncateMaxBatchSize',
  ]),
})

type AuditConfig = ValuesOf<typeof AUDIT>

/** @param where events go @param replaces former settings */
function maxEventSize(where: string, most: number, replaces: readonly string[]): Row<number> {
  const help = `largest event for ${where}; a larger one loses its bodies, and is dropped if it is still too large; default: any size`
  return bytes('', LEAST_EVENT_BYTES, most, help, { replaces })
}

/** Errors in combinations of settings. @param backends the settings that define destinations */
export function checkAudit(
  config: AuditConfig,
  backends: readonly Setting[],
  isRecorded: boolean,
  reader: SettingsReader,
): void {
  if (config.auditPolicyFile === '' || isRecorded) return
  const message = `is given without ${backends.map(({ flag }) => flag).join(' and ')}: nothing would be recorded`
  addProblem(reader, AUDIT.auditPolicyFile, message, `give ${backends.map(namesOf).join(', or ')} too`)
}

// Settings of the audit webhook. Names and defaults are kube-apiserver's.
const HOUR_MS = 3_600_000
const MOST_WAITING = 1_000_000
const MOST_IN_BATCH = 100_000
const LEAST_QPS = 0.01
const MOST_QPS = 10_000

export const AUDIT_WEBHOOK = settings({
  /** A kubeconfig; '' = no webhook. */
  auditWebhookConfigFile: file('kubeconfig of a receiver of audit events (audit.k8s.io/v1 EventList)'),
  auditWebhookInitialBackoffMs: duration(
    '10s',
    1,
    HOUR_MS,
    'delay before a batch of events is sent to the webhook again after its first failed attempt',
  ),
  /** Events. */
  auditWebhookBatchBufferSize: integer(
    '10000',
    1,
    MOST_WAITING,
    'maximum number of events that wait for the webhook; further ones are dropped',
  ),
  /** Events. */
  auditWebhookBatchMaxSize: integer('400', 1, MOST_IN_BATCH, 'largest number of events in one request to the webhook'),
  auditWebhookBatchMaxWaitMs: duration(
    '30s',
    1,
    HOUR_MS,
    'maximum time that an event waits until its batch is sent to the webhook',
  ),
  auditWebhookBatchThrottleEnable: toggle(true, 'whether the rate of requests to the webhook is limited'),
  /** Batches per second. */
  auditWebhookBatchThrottleQps: decimal('10', LEAST_QPS, MOST_QPS, 'requests to the webhook a second'),
  auditWebhookBatchThrottleBurst: integer('15', 1, MOST_QPS, 'burst of requests to the webhook above that rate'),
  /** Bytes; 0 = unlimited. */
  auditWebhookTruncateMaxEventSize: maxEventSize('the audit webhook', MAX_BATCH_BYTES, [
    'auditWebhookTruncateEnabled',
    'auditWebhookTruncateMaxBatchSize',
  ]),
})
