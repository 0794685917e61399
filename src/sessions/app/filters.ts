// The filter of recordings in a gateway thread, with the files that the thread writes.

import type { MetricsRecorder } from '../../gateway/metrics/recorder.ts'
import type { SubjectFilters } from '../../gateway/request/exchange/decision.ts'
import type { TopicChannel } from '../../kit/core/topics/topics.ts'
import { systemClock } from '../../kit/io/world/clock.ts'
import { addTickable } from '../../kit/io/world/coarse-ticker.ts'
import { RECORDING_SETTINGS } from '../core/recording/recording-settings.ts'
import { headerInflater } from '../io/inflate-headers.ts'
import { Recordings } from '../io/recordings.ts'
import { SESSION_RECORDINGS } from '../metrics/descriptors.ts'
import { SessionRecordingFilter } from '../request/session-recording.ts'

interface SessionsThread {
  readonly metrics: Pick<MetricsRecorder, 'add'>
  readonly topics: TopicChannel
}

export function sessionFilters({ metrics, topics }: SessionsThread): SubjectFilters {
  const recordings = new Recordings()
  // For as long as the thread lives.
  addTickable(recordings)
  topics.subscribe(RECORDING_SETTINGS, (settings) => {
    recordings.settings = settings
  })
  const counted = (cluster: string, result: 'complete' | 'incomplete' | 'refused'): void =>
    metrics.add(SESSION_RECORDINGS, 1, cluster, result)
  return {
    'session-recording': new SessionRecordingFilter({
      recordings,
      inflater: headerInflater,
      clock: systemClock,
      counted,
    }),
  }
}
