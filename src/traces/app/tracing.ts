// Tracing on the main thread: receives what the gateway threads have recorded, and sends it to the collector.

import type { GatewayMetrics } from '../../gateway/metrics/metrics.ts'
import type { Clock, Logger } from '../../kit/api/ports.ts'
import type { SubscribesToThreads } from '../../kit/core/topics/streams.ts'
import { VERSION } from '../../kit/io/program/build.ts'
import { type Running, Started } from '../../process/components/component.ts'
import type { Config } from '../../process/config/config.ts'
import { ReloadedFiles } from '../../process/config/reloaded-files.ts'
import { TRACED } from '../core/otlp.ts'
import { type ExporterWaits, OtlpExporter } from '../io/otlp-exporter.ts'
import { otlpFileNames, readOtlpFiles } from '../io/otlp-files.ts'
import { TRACE_SPANS, TRACES_DROPPED, TRACES_WAITING } from '../metrics/descriptors.ts'

/** Milliseconds. */
export interface TracingWaits extends ExporterWaits {
  /** Between two checks of the collector's files. Default 1 s. */
  readonly lookMs?: number
}

interface TracingDeps {
  readonly config: Config
  readonly pool: SubscribesToThreads
  readonly metrics: Pick<GatewayMetrics, 'recorder' | 'beforeScrape'>
  readonly clock: Clock
  readonly log: Logger
  readonly waits?: TracingWaits | undefined
}

/** Traced requests of one thread that may be in transit. */
const CREDIT = 512
/** Time limit at the end. */
const STOP_MS = 2_000

/** Its files are read before anything is written. @throws {UserError} if one is unusable */
export function checkOtlpFiles(config: Config): void {
  if (config.tracingOtlpEndpoint !== '') readOtlpFiles(config)
}

/** Takes what the threads hand over until they end. */
class Tracing extends Started<Running> {
  readonly outlivesThreads = true
}

export function createTracing(deps: TracingDeps): Tracing {
  return new Tracing('traces', () => startTracing(deps))
}

/** undefined = no tracing. @throws {UserError} if a file is unusable */
function startTracing({ config, pool, metrics, clock, log, waits }: TracingDeps): Running | undefined {
  if (config.tracingOtlpEndpoint === '') return undefined
  const files = readOtlpFiles(config)
  const { recorder } = metrics
  const exporter = new OtlpExporter({
    url: tracesUrl(config.tracingOtlpEndpoint),
    files,
    resource: {
      'service.name': 'portcullis',
      'service.instance.id': config.replicaName,
      'service.version': VERSION,
    },
    version: VERSION,
    clock,
    log,
    random: Math.random,
    onSpans: (count, result) => recorder.add(TRACE_SPANS, count, result),
    onDropped: (requests) => recorder.add(TRACES_DROPPED, requests, 'queue'),
    ...(waits !== undefined && { waits }),
  })
  const unsubscribe = pool.subscribe(TRACED, undefined, {
    credit: CREDIT,
    onEvents: (traces, dropped) => {
      if (dropped > 0) recorder.add(TRACES_DROPPED, dropped, 'thread')
      exporter.add(traces)
    },
  })
  metrics.beforeScrape(() => {
    recorder.set(TRACES_WAITING, exporter.waiting)
    return Promise.resolve()
  })
  const names = otlpFileNames(config)
  const read = (): void => void Object.assign(files, readOtlpFiles(config))
  const reloaded =
    names.length === 0
      ? undefined
      : new ReloadedFiles({
          label: 'tracing',
          what: 'the files for traces',
          files: names,
          read,
          log,
          ...(waits?.lookMs !== undefined && { lookMs: waits.lookMs }),
        })
  return {
    get reloads() {
      return reloaded?.reloads ?? new Map<string, boolean>()
    },
    async stop() {
      reloaded?.stop()
      unsubscribe()
      await exporter.stop(STOP_MS)
    },
  }
}

/** Interpreted like OTEL_EXPORTER_OTLP_ENDPOINT: a base URL, to which the traces path is added. */
function tracesUrl(endpoint: string): string {
  const base = endpoint.replace(/\/+$/, '')
  return base.endsWith('/v1/traces') ? base : `${base}/v1/traces`
}
