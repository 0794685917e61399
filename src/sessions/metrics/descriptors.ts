// Metrics of recordings: rows of the table of all threads (gateway/metrics/descriptors.ts), to which program/subjects/subjects.ts adds them.

import { type Metric, SubjectMetrics } from '../../gateway/metrics/metric.ts'
import type { RecordingResult, UploadResult } from '../core/recording/recording-settings.ts'

export const SESSION_METRICS = new SubjectMetrics()

export const SESSION_RECORDINGS: Metric<[string, RecordingResult]> = SESSION_METRICS.counter(
  'session_recordings_total',
  ['cluster', 'result'],
  'Sessions that spec.audit.sessions requires to be recorded: complete, incomplete, or refused because they could not be',
)
export const SESSION_RECORDING_BYTES: Metric<[]> = SESSION_METRICS.gauge(
  'session_recording_dir_bytes',
  [],
  'Bytes in the directory of recordings, of all gateways that write there',
)
export const SESSION_UPLOADS: Metric<[UploadResult]> = SESSION_METRICS.counter(
  'session_recording_uploads_total',
  ['result'],
  'Uploads of recordings to the bucket: uploaded, or failed, after which the file waits for the next attempt',
)
export const SESSION_UPLOAD_OLDEST: Metric<[]> = SESSION_METRICS.gauge(
  'session_recording_upload_oldest_seconds',
  [],
  'Age of the oldest recording that waits for its upload; 0: none waits',
)
