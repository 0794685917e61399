// Tracing in a gateway thread.

import type { MetricsRecorder } from '../../gateway/metrics/recorder.ts'
import type { Clock } from '../../kit/api/ports.ts'
import type { StreamsToMain } from '../../kit/core/topics/streams.ts'
import type { Config } from '../../process/config/config.ts'
import { TRACED } from '../core/otlp.ts'
import { ThreadTraces } from './thread-traces.ts'

interface TracedThread {
  readonly config: Config
  readonly threads: number
  readonly metrics: MetricsRecorder
  readonly streams: StreamsToMain
  readonly clock: Pick<Clock, 'monotonic'>
}

export function traceObservers({ config, threads, metrics, streams, clock }: TracedThread): readonly ThreadTraces[] {
  if (config.tracingOtlpEndpoint === '') return []
  const traces = new ThreadTraces(config, threads, metrics, () => clock.monotonic())
  streams.serve(TRACED, (_, emit) => traces.handTo(emit))
  return [traces]
}
