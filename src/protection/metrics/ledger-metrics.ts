// Metrics of the ledger: its writes, and its view of the PodProtectors.

import type { MainFamilies } from '../../gateway/metrics/main-families.ts'
import type { ProtectionEvents } from '../core/requests/protection-events.ts'
import {
  BATCH,
  BATCH_RETRIES,
  EXECUTE,
  EXECUTE_SIZE,
  INFLIGHT_KEYS,
  PROTECTOR_ENQUEUE,
  PROTECTOR_INDEX_ERROR,
  PROTECTOR_MALFORMED,
  PROTECTOR_SOURCE_ERROR,
  PROTECTOR_SOURCES,
  PROTECTORS_FOLLOWING,
  RELEASED,
  SUBMIT,
  SUBMIT_RETRIES,
} from './descriptors.ts'

const POOL = 'podprotector-update'

export interface LedgerMetrics {
  readonly events: Omit<ProtectionEvents, 'reviewed'>
  /** Number of PodProtectors with pending writes. */
  writing(keys: number): void
}

export function ledgerEvents(families: MainFamilies): LedgerMetrics {
  const keys = families.of(INFLIGHT_KEYS)
  return {
    events: { ...writeEvents(families), ...indexEvents(families) },
    writing: (count) => keys.set(count, POOL),
  }
}

function writeEvents(families: MainFamilies): Pick<ProtectionEvents, 'executed' | 'batch' | 'submitted' | 'released'> {
  const submit = families.of(SUBMIT)
  const retries = families.of(SUBMIT_RETRIES)
  const batch = families.of(BATCH)
  const batchRetries = families.of(BATCH_RETRIES)
  const execute = families.of(EXECUTE)
  const size = families.of(EXECUTE_SIZE)
  const released = families.of(RELEASED)
  return {
    executed(_key, operations, result, error, durationMs) {
      execute.observe(durationMs / 1000, POOL, result, error || 'nil')
      size.observe(operations, POOL, result, error || 'nil')
    },
    batch(durationMs, retried) {
      batch.observe(durationMs / 1000, POOL)
      batchRetries.observe(retried, POOL)
    },
    submitted(error, durationMs, retried) {
      submit.observe(durationMs / 1000, POOL, error || 'nil')
      retries.observe(retried, POOL, error || 'nil')
    },
    released: (count) => released.add(count),
  }
}

function indexEvents(families: MainFamilies): Pick<ProtectionEvents, 'indexed' | 'malformed' | 'following'> {
  const enqueue = families.of(PROTECTOR_ENQUEUE)
  const errors = families.of(PROTECTOR_INDEX_ERROR)
  const malformed = families.of(PROTECTOR_MALFORMED)
  const current = families.of(PROTECTORS_FOLLOWING)
  const sources = families.of(PROTECTOR_SOURCES)
  const sourceErrors = families.of(PROTECTOR_SOURCE_ERROR)
  return {
    indexed: (durationMs) => enqueue.observe(durationMs / 1000),
    malformed(count, found) {
      malformed.set(count)
      if (found) errors.add(1, 'Malformed')
    },
    following(isCurrent) {
      current.set(isCurrent ? 1 : 0)
      sources.set(1)
      if (!isCurrent) sourceErrors.add(1, 'NotFollowed')
    },
  }
}
