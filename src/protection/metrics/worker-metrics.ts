// Metrics of the workers of pod protection.

import type { MainFamilies } from '../../gateway/metrics/main-families.ts'
import { WORKER_RECONCILE } from './descriptors.ts'

/** A worker has run. @param cell '' = none @param error '' = none */
export type WorkerTurn = (worker: string, cell: string, error: string, durationMs: number) => void

export function workerTurns(families: MainFamilies): WorkerTurn {
  const reconciles = families.of(WORKER_RECONCILE)
  return (worker, cell, error, durationMs) => reconciles.observe(durationMs / 1000, worker, cell, error || 'nil')
}
