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
import { allocateRoom, DirectoryRoom } from '../core/recording/directory-room.ts'
import type { RecordingSettings } from '../core/recording/recording-settings.ts'
import { readS3Files } from '../io/s3-files.ts'
import { Spool } from '../io/spool.ts'
import { SESSION_RECORDING_BYTES, SESSION_RECORDINGS } from '../metrics/descriptors.ts'
import { startUploads, type UploadConfig } from './session-uploads.ts'
import { RECORDING_SETTINGS } from './topics.ts'

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
