// Metrics of the generator of PodProtectors.

import type { GeneratorEvents } from '../../core/protection/generator/events.ts'
import type { GeneratorKind } from '../../core/protection/generator/kinds.ts'
import type { Labels, MetricFamilies, WorkerTurn } from './protection-families.ts'

export function generatorEvents(families: MetricFamilies, worker: WorkerTurn): GeneratorEvents {
  const on = ['group', 'version', 'resource', ...families.ofNamespace]
  const reconcile = families.histogram('generator_reconcile', 'Workloads that the generator has looked at', [
    ...on,
    'error',
  ])
  const act = families.counter('generator_action', 'What the generator found to do', [...on, 'action'])
  const labelsOf = ({ resource: { group, version, plural } }: GeneratorKind, namespace: string): Labels => {
    return { group, version, resource: plural, ...families.inNamespace(namespace) }
  }
  return {
    reconciled: (kind, namespace, error, durationMs) => {
      reconcile.observe({ ...labelsOf(kind, namespace), error: error === '' ? 'nil' : error }, durationMs / 1000)
      worker('generator', '', error, durationMs)
    },
    found: (kind, namespace, finding) => act.inc({ ...labelsOf(kind, namespace), action: finding }),
  }
}
