// Metrics of recordings: rows of the table of all threads (gateway/metrics/descriptors.ts), to which program/subjects/subjects.ts adds them.

import { type Metric, SubjectMetrics } from '../../gateway/metrics/metric.ts'
import type { RecordingResult } from '../core/recording/recording-settings.ts'

export const SESSION_METRICS = new SubjectMetrics()

export const SESSION_RECORDINGS: Metric<[string, RecordingResult]> = SESSION_METRICS.counter(
  'session_recordings_total',
  ['cluster', 'result'],
  'Sessions that spec.audit.sessions wants recorded: complete, incomplete, or refused because they could not be',
)
export const SESSION_RECORDING_BYTES: Metric<[]> = SESSION_METRICS.gauge(
  'session_recording_dir_bytes',
  [],
  'Bytes in the directory of recordings, of all its writers',
)
