// Metrics of pods for a scale-down, from the custom metrics API of their cluster, as a HorizontalPodAutoscaler reads them. Pods themselves
// are never called: whoever writes a pod's status would choose which addresses the gateway connects to.

import { type JsonObject, nameOf } from '../../../api/kube/json-object.ts'
import type { PodMetricIdentifier, VictimPreference } from '../../../api/scale-down-policy/scale-down-policy.ts'
import { type AnswerLimits, OBJECT } from '../../answers/answer-limits.ts'
import { selectorText } from '../../selectors/compile-selector.ts'
import { MAX_METRIC_AGE_MS, type PodMetric, podMetric } from '../pod-metrics/metric-values.ts'
import { type ClusterReads, forEachAtOnce, UnavailableError } from './cluster-reads.ts'

/** Adapters serve one of them at least. They differ in nothing that is read here. */
const VERSIONS = ['v1beta2', 'v1beta1'] as const
/** The API has no pages: 5000 pods at 1.6 KiB and 20 values each, of which they need a quarter. */
const METRICS: AnswerLimits = { ...OBJECT, bytes: 8 * 1024 * 1024 }

export interface MeasuredPods {
  readonly namespace: string
  readonly pods: readonly JsonObject[]
  /** What selects them, as text. */
  readonly selector: string
}

/**
 * One call for each preference that asks for a metric, a second one where the cluster has v1beta1 only.
 * @throws {UnavailableError} also when none of the pods has a value: then the metric is another one than its author thinks
 */
export async function metricsOf(
  reads: ClusterReads,
  measured: MeasuredPods,
  prefer: readonly VictimPreference[],
  nowMs: number,
): Promise<ReadonlyMap<VictimPreference, PodMetric>> {
  const found = new Map<VictimPreference, PodMetric>()
  const asking = prefer.filter(({ by }) => by === 'Metric')
  await forEachAtOnce(asking, async (preference) => {
    if (preference.metric !== undefined) {
      found.set(preference, await readMetric(reads, measured, preference.metric, nowMs))
    }
  })
  return found
}

async function readMetric(
  reads: ClusterReads,
  { namespace, pods, selector }: MeasuredPods,
  { name, selector: labels }: PodMetricIdentifier,
  nowMs: number,
): Promise<PodMetric> {
  const ofMetric = labels === undefined ? '' : selectorText(labels)
  const narrowed = ofMetric === '' ? '' : `&metricLabelSelector=${encodeURIComponent(ofMetric)}`
  const path = `namespaces/${encodeURIComponent(namespace)}/pods/*/${encodeURIComponent(name)}`
  const query = `labelSelector=${encodeURIComponent(selector)}${narrowed}`
  let why = ''
  for (const version of VERSIONS) {
    const answer = await reads.ask(`/apis/custom.metrics.k8s.io/${version}/${path}?${query}`, METRICS)
    if ('object' in answer) {
      const values = podMetric(answer.object, namespace, nowMs)
      if (pods.some((pod) => values.has(nameOf(pod)))) return values
      throw new UnavailableError(
        `metric ${name} has no value of the last ${MAX_METRIC_AGE_MS / 60_000} minutes for any of its pods`,
      )
    }
    why = answer.why
    // The version is not served, or the adapter has no such metric.
    if (answer.status !== 404) break
  }
  throw new UnavailableError(`metric ${name} cannot be read: ${why}`)
}
