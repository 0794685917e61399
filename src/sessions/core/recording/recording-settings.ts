// What main thread and gateway threads tell each other about recordings.

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
  /** Bytes in the directory, in memory that all threads share: each adds what it writes. */
  readonly used: BigInt64Array
}

/** What became of the recording of a session that was to be recorded. */
export type RecordingResult = 'complete' | 'incomplete' | 'refused'
