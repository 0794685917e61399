// Settings of the recordings of sessions (spec.audit.sessions of an UpstreamCluster): where they are, and how much at most.

import { addProblem } from './setting-problems.ts'
import { bytes, file, settings, text, type ValuesOf } from './setting-rows.ts'
import type { SettingsReader } from './settings-reader.ts'

const LEAST_BYTES = 64 * 1024
const MOST_BYTES = 1024 ** 4

export const SESSION_RECORDING = settings({
  /** '' = nothing is recorded. */
  sessionRecordingDir: text(
    '<dir>',
    '',
    'where sessions of clusters with spec.audit.sessions are recorded; default: nowhere',
  ),
  sessionRecordingKeyFile: file('key that encrypts the recordings: 32 random bytes, as one line of base64'),
  sessionRecordingMaxBytes: bytes(
    String(64 * 1024 * 1024),
    LEAST_BYTES,
    MOST_BYTES,
    'size of a recording; what comes then is not recorded',
  ),
  sessionRecordingMaxDirBytes: bytes(
    String(10 * 1024 * 1024 * 1024),
    LEAST_BYTES,
    MOST_BYTES,
    'size of all files in the directory of recordings; then nothing is recorded until some are removed',
  ),
})

/** Errors in combinations of settings. */
export function checkSessionRecording(
  { sessionRecordingDir, sessionRecordingKeyFile }: ValuesOf<typeof SESSION_RECORDING>,
  reader: SettingsReader,
): void {
  if ((sessionRecordingDir === '') === (sessionRecordingKeyFile === '')) return
  const [missing, fix] =
    sessionRecordingKeyFile === ''
      ? [SESSION_RECORDING.sessionRecordingKeyFile, 'make a key: openssl rand -base64 32 > sessions.key']
      : [SESSION_RECORDING.sessionRecordingDir, 'name a directory for the recordings, or remove the key']
  addProblem(reader, missing, 'is missing: recordings need a directory and a key', fix)
}
