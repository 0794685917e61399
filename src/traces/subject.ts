// What traces add to the program, which has no other import of them (program/subjects/subjects.ts).

import { TRACE_METRICS } from './metrics/descriptors.ts'

export const TRACES = {
  kinds: [],
  settings: ['tracing'] as const,
  metrics: TRACE_METRICS,
  check: async () => (await import('./app/tracing.ts')).checkOtlpFiles,
  observers: async () => (await import('./app/observers.ts')).traceObservers,
  component: async () => (await import('./app/tracing.ts')).createTracing,
}
