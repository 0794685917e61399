// The settings of the audit webhook. Names and defaults are kube-apiserver's.

import { MAX_BATCH_BYTES } from '../../core/audit/truncation.ts'
import { maxEventSize } from './audit.ts'
import { decimal, duration, file, integer, settings, toggle } from './setting-rows.ts'

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
    'how long after the first failed attempt a batch of events is sent to the webhook again',
  ),
  /** Events. */
  auditWebhookBatchBufferSize: integer('10000', 1, MOST_WAITING, 'events that wait for the webhook; more are dropped'),
  /** Events. */
  auditWebhookBatchMaxSize: integer('400', 1, MOST_IN_BATCH, 'largest number of events in one request to the webhook'),
  auditWebhookBatchMaxWaitMs: duration('30s', 1, HOUR_MS, 'how long events for the webhook wait for others'),
  auditWebhookBatchThrottleEnable: toggle(true, 'whether the rate of requests to the webhook is limited'),
  /** Batches a second. */
  auditWebhookBatchThrottleQps: decimal('10', LEAST_QPS, MOST_QPS, 'requests to the webhook a second'),
  auditWebhookBatchThrottleBurst: integer(
    '15',
    1,
    MOST_QPS,
    'requests to the webhook at once, when fewer were sent before',
  ),
  /** Bytes; 0 = any size. */
  auditWebhookTruncateMaxEventSize: maxEventSize('the audit webhook', MAX_BATCH_BYTES, [
    'auditWebhookTruncateEnabled',
    'auditWebhookTruncateMaxBatchSize',
  ]),
})
