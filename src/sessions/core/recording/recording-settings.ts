// What main thread and gateway threads tell each other about recordings.

import { Topic } from '../../../kit/core/topics/topics.ts'
import type { RoomMemory } from './directory-room.ts'

/** For all sessions of all clusters. */
export interface RecordingSettings {
  /** '' = nothing is recorded. */
  readonly dir: string
  /** What the key file holds; undefined without a directory. */
  readonly key: Uint8Array | undefined
  /** Limit of one recording. */
  readonly maxBytes: number
  /** Limit of all files in the directory. */
  readonly maxDirBytes: number
  /** Who holds how much of it: each thread adds what it writes. */
  readonly room: RoomMemory
}

/** What became of the recording of a session that was to be recorded. */
export type RecordingResult = 'complete' | 'incomplete' | 'refused'
/** What became of an attempt to move a recording to the bucket. */
export type UploadResult = 'uploaded' | 'failed'

/** What the main thread tells the gateway threads about recordings. */
export const RECORDING_SETTINGS = new Topic<RecordingSettings>('session-recording-settings')
