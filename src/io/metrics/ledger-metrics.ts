// Metrics of the ledger: its writes, and what it knows of the PodProtectors.

import type { ProtectionEvents } from '../../core/protection/requests/protection-events.ts'
import { type MetricFamilies, SIZES } from './protection-families.ts'

const RETRIES = [0, 1, 2, 4, 8, 16]
const POOL = 'podprotector-update'

export interface LedgerMetrics {
  readonly events: Omit<ProtectionEvents, 'reviewed'>
  /** PodProtectors that have something to be written. */
  writing(keys: number): void
}

export function ledgerEvents(families: MetricFamilies): LedgerMetrics {
  const keys = families.gauge('retrybatch_inflight_keys', 'PodProtectors with something to be written', ['pool'])
  return {
    events: { ...writeEvents(families), ...indexEvents(families) },
    writing: (count) => keys.set({ pool: POOL }, count),
  }
}

function writeEvents(
  families: MetricFamilies,
): Pick<ProtectionEvents, 'executed' | 'batch' | 'submitted' | 'released'> {
  const submit = families.histogram('retrybatch_submit', 'How long an operation waited for its answer', [
    'pool',
    'error',
  ])
  const retries = families.histogram(
    'retrybatch_submit_retry_count',
    'Failed attempts before an operation was answered',
    ['pool', 'error'],
    RETRIES,
  )
  const batch = families.histogram('retrybatch_batch', 'From the first attempt to write a batch to its end', ['pool'])
  const batchRetries = families.histogram(
    'retrybatch_batch_retry_count',
    'Failed attempts before a batch was written or given up',
    ['pool'],
    RETRIES,
  )
  const attempt = ['pool', 'result', 'error']
  const execute = families.histogram('retrybatch_execute', 'Attempts to write a batch', attempt)
  const size = families.histogram('retrybatch_execute_batch_size', 'Operations in an attempt', attempt, SIZES)
  const released = families.counter('protection_released_total', 'Reservations that were released', [])
  return {
    executed(_key, operations, result, error, durationMs) {
      const labels = { pool: POOL, result, error: error === '' ? 'nil' : error }
      execute.observe(labels, durationMs / 1000)
      size.observe(labels, operations)
    },
    batch(durationMs, retried) {
      batch.observe({ pool: POOL }, durationMs / 1000)
      batchRetries.observe({ pool: POOL }, retried)
    },
    submitted(error, durationMs, retried) {
      const labels = { pool: POOL, error: error === '' ? 'nil' : error }
      submit.observe(labels, durationMs / 1000)
      retries.observe(labels, retried)
    },
    released: (count) => released.inc(count),
  }
}

function indexEvents(families: MetricFamilies): Pick<ProtectionEvents, 'indexed' | 'malformed' | 'following'> {
  const enqueue = families.histogram('ppr_enqueue', 'Changes of PodProtectors, until they can be found by labels', [])
  const errors = families.counter('ppr_index_error', 'PodProtectors found to be partly unreadable', ['error'])
  const malformed = families.gauge(
    'ppr_malformed',
    'PodProtectors that are partly unreadable and so protect less than they say',
    [],
  )
  const current = families.gauge('ppr_following', '1 when what is known of the PodProtectors is current', [])
  const sources = families.gauge('ppr_source_list_length', 'API servers from which PodProtectors are read', [])
  const sourceErrors = families.counter(
    'ppr_source_list_error',
    'How often the PodProtectors of an API server could no longer be followed',
    ['error'],
  )
  return {
    indexed: (durationMs) => enqueue.observe(durationMs / 1000),
    malformed(count, found) {
      malformed.set(count)
      if (found) errors.inc({ error: 'Malformed' })
    },
    following(isCurrent) {
      current.set(isCurrent ? 1 : 0)
      sources.set(1)
      if (!isCurrent) sourceErrors.inc({ error: 'NotFollowed' })
    },
  }
}
