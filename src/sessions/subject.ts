// What recordings of sessions add to the program, which has no other import of them (program/subjects/subjects.ts).

import { addPlay } from './cli/program.ts'
import { SESSION_METRICS } from './metrics/descriptors.ts'

export const SESSIONS = {
  kinds: [],
  fields: ['audit.sessions'] as const,
  settings: ['sessionRecording'] as const,
  metrics: SESSION_METRICS,
  addCommands: addPlay,
  check: async () => (await import('./app/session-recordings.ts')).checkRecordingFiles,
  filters: async () => (await import('./app/filters.ts')).sessionFilters,
  component: async () => (await import('./app/session-recordings.ts')).createSessionRecordings,
}
