// Settings of the recordings of sessions (spec.audit.sessions of an UpstreamCluster): where they are, how much at most, and the bucket to which they are
// moved.

import { addProblem, isWrong, namesOf } from './setting-problems.ts'
import { bytes, file, settings, text, type ValuesOf } from './setting-rows.ts'
import { plainUrl, textLike } from './setting-values.ts'
import type { SettingsReader } from './settings-reader.ts'

const LEAST_BYTES = 64 * 1024
const MOST_BYTES = 1024 ** 4
/** With a bucket: an object that is sent in one request has 5 GiB at most, and sealing adds some. */
const MOST_OBJECT_BYTES = 4 * 1024 * 1024 * 1024

export const SESSION_RECORDING = settings({
  /** '' = nothing is recorded. */
  sessionRecordingDir: text(
    '<dir>',
    '',
    'directory in which sessions of clusters with spec.audit.sessions are recorded; default: nothing is recorded',
  ),
  sessionRecordingKeyFile: file('key that encrypts the recordings: 32 random bytes, as one line of base64'),
  sessionRecordingMaxBytes: bytes(
    String(64 * 1024 * 1024),
    LEAST_BYTES,
    MOST_BYTES,
    'maximum size of a recording; the rest of its session is not recorded',
  ),
  sessionRecordingMaxDirBytes: bytes(
    String(10 * 1024 * 1024 * 1024),
    LEAST_BYTES,
    MOST_BYTES,
    'maximum size of all recordings in the directory, divided among users; beyond it, nothing is recorded until some are removed',
  ),
  /** '' = recordings stay in the directory. */
  sessionRecordingS3Endpoint: text(
    '<url>',
    '',
    'S3 store to which complete recordings are moved, such as https://s3.eu-central-1.amazonaws.com; default: they stay in the directory',
    { parse: plainUrl('https://s3.eu-central-1.amazonaws.com') },
  ),
  sessionRecordingS3Bucket: text('<name>', '', 'bucket in that store; its name becomes part of the path', {
    parse: textLike(/^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/, 'the name of a bucket', 'write audit-recordings'),
  }),
  sessionRecordingS3Prefix: text('<prefix>', '', 'prefix of all object names, such as prod/sessions', {
    parse: textLike(
      /^(?=.{1,512}$)[A-Za-z0-9_-][A-Za-z0-9._-]*(\/[A-Za-z0-9_-][A-Za-z0-9._-]*)*\/?$/,
      'a prefix: letters, digits, dots, hyphens and underscores between slashes',
      'write prod/sessions',
    ),
  }),
  sessionRecordingS3Region: text('<region>', 'us-east-1', 'region of the bucket', {
    parse: textLike(/^[a-z0-9-]{1,64}$/, 'a region', 'write eu-central-1'),
  }),
  sessionRecordingS3CredentialsFile: file(
    "access key for the bucket, in the format of AWS's shared credentials file; its profile default is used",
  ),
  /** '' = the system's CAs. */
  sessionRecordingS3CaFile: file('CAs (PEM) that verify the store; default: those of the system'),
})

type SessionRecordingConfig = ValuesOf<typeof SESSION_RECORDING>

/** Errors in combinations of settings. */
export function checkSessionRecording(config: SessionRecordingConfig, reader: SettingsReader): void {
  checkBucket(config, reader)
  const { sessionRecordingDir, sessionRecordingKeyFile } = config
  if ((sessionRecordingDir === '') === (sessionRecordingKeyFile === '')) return
  const [missing, fix] =
    sessionRecordingKeyFile === ''
      ? [SESSION_RECORDING.sessionRecordingKeyFile, 'create a key: openssl rand -base64 32 > sessions.key']
      : [SESSION_RECORDING.sessionRecordingDir, 'name a directory for the recordings, or remove the key']
  addProblem(reader, missing, 'is missing: recordings need a directory and a key', fix)
}

const WITH_ENDPOINT = ['sessionRecordingDir', 'sessionRecordingS3Bucket', 'sessionRecordingS3CredentialsFile'] as const
const ONLY_WITH_ENDPOINT = [
  'sessionRecordingS3Bucket',
  'sessionRecordingS3Prefix',
  'sessionRecordingS3CredentialsFile',
  'sessionRecordingS3CaFile',
] as const

function checkBucket(config: SessionRecordingConfig, reader: SettingsReader): void {
  const table = SESSION_RECORDING
  const { sessionRecordingS3Endpoint: endpoint } = table
  const { sessionRecordingS3Endpoint: url, sessionRecordingS3CaFile: caFile, sessionRecordingMaxBytes } = config
  if (isWrong(reader, endpoint)) return
  if (url === '') {
    for (const name of ONLY_WITH_ENDPOINT) {
      if (config[name] === '') continue
      addProblem(
        reader,
        table[name],
        `is given without ${endpoint.flag}`,
        `give ${namesOf(endpoint)} too, or remove it`,
      )
    }
    return
  }
  for (const name of WITH_ENDPOINT) {
    if (config[name] !== '' || isWrong(reader, table[name])) continue
    addProblem(reader, table[name], `is missing: ${endpoint.flag} needs it`, `give ${namesOf(table[name])} too`)
  }
  if (caFile !== '' && !url.startsWith('https:')) {
    const message = `has no meaning, because ${endpoint.flag} is not TLS`
    addProblem(reader, table.sessionRecordingS3CaFile, message, 'write https instead of http')
  }
  if (sessionRecordingMaxBytes <= MOST_OBJECT_BYTES) return
  const message = `is more than ${MOST_OBJECT_BYTES}, the maximum with ${endpoint.flag}`
  addProblem(reader, table.sessionRecordingMaxBytes, message, 'give a smaller size')
}
