// Has recordings moved to the bucket of the settings, by files that are reread.

import type { GatewayMetrics } from '../../gateway/metrics/metrics.ts'
import type { Clock, Logger } from '../../kit/api/ports.ts'
import type { Config } from '../../process/config/config.ts'
import { ReloadedFiles } from '../../process/config/reloaded-files.ts'
import { S3Bucket } from '../io/s3-bucket.ts'
import { readS3Files, s3FileNames } from '../io/s3-files.ts'
import type { SpooledFile } from '../io/spool.ts'
import { Uploads } from '../io/uploads.ts'
import { SESSION_UPLOAD_OLDEST, SESSION_UPLOADS } from '../metrics/descriptors.ts'

export type UploadConfig = Pick<
  Config,
  | 'sessionRecordingS3Endpoint'
  | 'sessionRecordingS3Bucket'
  | 'sessionRecordingS3Prefix'
  | 'sessionRecordingS3Region'
  | 'sessionRecordingS3CredentialsFile'
  | 'sessionRecordingS3CaFile'
>

interface UploadDeps {
  readonly config: UploadConfig
  readonly metrics: Pick<GatewayMetrics, 'families'>
  readonly clock: Clock
  readonly log: Logger
}

interface RunningUploads {
  readonly reloads: ReadonlyMap<string, boolean>
  describe(): object
  /** Files are about to be looked for. */
  looking(): void
  /** A file was found. */
  see(file: SpooledFile): void
  /** All files were found. */
  looked(): void
  /** @param look through the directory once more */
  stop(look: () => Promise<unknown>): Promise<void>
}

const SECOND_MS = 1000
/** Time limit of the uploads at the end. */
const STOP_MS = 5_000

/** undefined = recordings stay in the directory. @throws {UserError} if a file is unusable */
export function startUploads(dir: string, { config, metrics, clock, log }: UploadDeps): RunningUploads | undefined {
  const uploaded = metrics.families.of(SESSION_UPLOADS)
  const oldest = metrics.families.of(SESSION_UPLOAD_OLDEST)
  const { sessionRecordingS3Endpoint, sessionRecordingS3Bucket, sessionRecordingS3Prefix } = config
  if (sessionRecordingS3Endpoint === '') return undefined
  const url = `${sessionRecordingS3Endpoint.replace(/\/$/, '')}/${sessionRecordingS3Bucket}`
  const files = readS3Files(config)
  const bucket = new S3Bucket({ url, region: config.sessionRecordingS3Region, files, clock })
  const uploads = new Uploads({
    dir,
    prefix: sessionRecordingS3Prefix === '' ? '' : `${sessionRecordingS3Prefix.replace(/\/$/, '')}/`,
    bucket,
    clock,
    log,
    random: Math.random,
    counted: (result) => uploaded.add(1, result),
  })
  const reloaded = new ReloadedFiles({
    label: 'session-recording-s3',
    what: 'the files for the store of recordings',
    files: s3FileNames(config),
    read() {
      Object.assign(files, readS3Files(config))
      uploads.retry()
    },
    log,
  })
  return {
    get reloads() {
      return reloaded.reloads
    },
    describe: () => ({ to: url, ...uploads.describe() }),
    looking: () => uploads.looking(),
    see: (file) => uploads.see(file),
    looked() {
      uploads.looked()
      oldest.set(uploads.oldestMs / SECOND_MS)
    },
    async stop(look) {
      reloaded.stop()
      await uploads.stop(look, STOP_MS)
      await bucket.stop()
    },
  }
}
