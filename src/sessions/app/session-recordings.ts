// Recordings in the main thread: reads the key, tells the threads where they are, looks through the directory, which others may write and empty, and has
// recordings moved to a bucket.

import { accessSync, constants } from 'node:fs'
import { resolve } from 'node:path'
import { readExistingKey } from '../../apiserver/io/store/key.ts'
import type { GatewayMetrics } from '../../gateway/metrics/metrics.ts'
import type { Clock, Logger } from '../../kit/api/ports.ts'
import { errorMessage } from '../../kit/api/validation/error-message.ts'
import { UserError } from '../../kit/api/validation/field-errors.ts'
import type { TopicChannel } from '../../kit/core/topics/topics.ts'
import { addTickable, removeTickable } from '../../kit/io/world/coarse-ticker.ts'
import { makePrivateDirectory } from '../../pki/io/pki-files.ts'
import { type Running, Started } from '../../process/components/component.ts'
import type { Config } from '../../process/config/config.ts'
import { ReloadedFiles } from '../../process/config/reloaded-files.ts'
import { allocateRoom, DirectoryRoom } from '../core/recording/directory-room.ts'
import { RECORDING_SETTINGS, type RecordingSettings } from '../core/recording/recording-settings.ts'
import { S3Bucket } from '../io/s3-bucket.ts'
import { readS3Files, s3FileNames } from '../io/s3-files.ts'
import { Spool, type SpooledFile } from '../io/spool.ts'
import { Uploads } from '../io/uploads.ts'
import {
  SESSION_RECORDING_BYTES,
  SESSION_RECORDINGS,
  SESSION_UPLOAD_OLDEST,
  SESSION_UPLOADS,
} from '../metrics/descriptors.ts'

type RecordingConfig = Pick<
  Config,
  'sessionRecordingDir' | 'sessionRecordingKeyFile' | 'sessionRecordingMaxBytes' | 'sessionRecordingMaxDirBytes'
> &
  UploadConfig

interface RecordingDeps {
  readonly config: RecordingConfig
  readonly topics: TopicChannel
  readonly metrics: Pick<GatewayMetrics, 'families'>
  readonly clock: Clock
  readonly log: Logger
}

interface RunningRecordings extends Running {
  describe(): object
}

/** Between two looks through the directory. */
const LOOK_MS = 10_000
const OF = 'the recordings of sessions'

export function createSessionRecordings(deps: RecordingDeps): SessionRecordings {
  return new SessionRecordings(deps)
}

/** @throws {UserError} if a file is missing or unusable */
export function checkRecordingFiles(config: RecordingConfig): void {
  const { sessionRecordingDir, sessionRecordingKeyFile, sessionRecordingS3Endpoint } = config
  if (sessionRecordingDir !== '') readRecordingKey(sessionRecordingKeyFile)
  if (sessionRecordingS3Endpoint !== '') readS3Files(config)
}

/** @throws {UserError} if it cannot be written */
function makeDirectory(dir: string): void {
  makePrivateDirectory(dir)
  try {
    accessSync(dir, constants.W_OK | constants.X_OK)
  } catch (error) {
    const message = `--session-recording-dir ${dir} cannot be written: ${errorMessage(error)}`
    throw new UserError(message, 'give this user access to it, or name another directory')
  }
}

/** @throws {UserError} */
export function readRecordingKey(file: string): Buffer {
  const key = readExistingKey(file, OF)
  if (key !== undefined) return key
  throw new UserError(`there is no key of ${OF} at ${file}`, `make one: openssl rand -base64 32 > ${file}`)
}

class SessionRecordings extends Started<RunningRecordings> {
  readonly state = 'sessionRecordings'

  constructor(deps: RecordingDeps) {
    super('session-recordings', () => startRecordings(deps))
  }

  describe(): object | null {
    return this.running?.describe() ?? null
  }
}

async function startRecordings(deps: RecordingDeps): Promise<RunningRecordings> {
  const { config, topics, metrics, log } = deps
  const { sessionRecordingDir, sessionRecordingKeyFile, sessionRecordingMaxBytes, sessionRecordingMaxDirBytes } = config
  const isOn = sessionRecordingDir !== ''
  const dir = isOn ? resolve(sessionRecordingDir) : ''
  const memory = allocateRoom()
  const settings: RecordingSettings = {
    dir,
    key: isOn ? new Uint8Array(readRecordingKey(sessionRecordingKeyFile)) : undefined,
    maxBytes: sessionRecordingMaxBytes,
    maxDirBytes: sessionRecordingMaxDirBytes,
    room: memory,
  }
  // The threads count these: they are in /metrics before there is anything to count.
  metrics.families.of<readonly string[]>(SESSION_RECORDINGS)
  const gauge = metrics.families.of(SESSION_RECORDING_BYTES)
  const uploads = startUploads(dir, deps)
  const room = new DirectoryRoom(memory, sessionRecordingMaxDirBytes)
  const spool = new Spool({ dir, room, looking: () => uploads?.looking(), see: (file) => uploads?.see(file) })
  let lookedMs = Number.NEGATIVE_INFINITY
  const look = async (): Promise<void> => {
    gauge.set(await spool.look())
    uploads?.looked()
  }
  const failed = (error: unknown): void =>
    log.warn('the directory of recordings cannot be read', { dir, error: errorMessage(error) })
  const ticking = {
    tick(nowMs: number): void {
      if (nowMs - lookedMs < LOOK_MS) return
      lookedMs = nowMs
      look().catch(failed)
    },
  }
  if (isOn) {
    makeDirectory(dir)
    await look().catch(failed)
    addTickable(ticking)
  }
  topics.publish(RECORDING_SETTINGS, settings)
  return {
    describe: () => ({ dir, bytes: room.held, ...(uploads !== undefined && { uploads: uploads.describe() }) }),
    get reloads() {
      return uploads?.reloads ?? new Map<string, boolean>()
    },
    async stop() {
      removeTickable(ticking)
      await uploads?.stop(() => spool.look())
    },
  }
}

type UploadConfig = Pick<
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

/** Has recordings moved to the bucket of the settings, by files that are reread. undefined = they stay in the directory. @throws {UserError} if a file is unusable */
function startUploads(dir: string, { config, metrics, clock, log }: UploadDeps): RunningUploads | undefined {
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
