// Metrics of the generator of PodProtectors.

import type { MainFamilies } from '../../gateway/metrics/main-families.ts'
import type { GeneratorEvents } from '../core/generator/events.ts'
import { GENERATOR_ACTION, GENERATOR_RECONCILE } from './descriptors.ts'
import type { WorkerTurn } from './worker-metrics.ts'

export function generatorEvents(families: MainFamilies, worker: WorkerTurn): GeneratorEvents {
  const reconcile = families.of(GENERATOR_RECONCILE)
  const act = families.of(GENERATOR_ACTION)
  return {
    reconciled: ({ resource: { group, version, plural } }, namespace, error, durationMs) => {
      reconcile.observe(durationMs / 1000, group, version, plural, namespace, error || 'nil')
      worker('generator', '', error, durationMs)
    },
    found: ({ resource: { group, version, plural } }, namespace, finding) =>
      act.add(1, group, version, plural, namespace, finding),
  }
}
