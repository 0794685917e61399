// Recordings in the main thread: reads the key, tells the threads where they are, and measures the directory, which others may write and empty.

import { accessSync, constants } from 'node:fs'
import { resolve } from 'node:path'
import { readExistingKey } from '../../apiserver/io/store/key.ts'
import type { GatewayMetrics } from '../../gateway/metrics/metrics.ts'
import type { Logger } from '../../kit/api/ports.ts'
import { errorMessage } from '../../kit/api/validation/error-message.ts'
import { UserError } from '../../kit/api/validation/field-errors.ts'
import type { TopicChannel } from '../../kit/core/topics/topics.ts'
import { addTickable, removeTickable } from '../../kit/io/world/coarse-ticker.ts'
import { makePrivateDirectory } from '../../pki/io/pki-files.ts'
import { Started } from '../../process/components/component.ts'
import type { Config } from '../../process/config/config.ts'
import type { RecordingSettings } from '../core/recording/recording-settings.ts'
import { DirectorySize } from '../io/directory-size.ts'
import { SESSION_RECORDING_BYTES, SESSION_RECORDINGS } from '../metrics/descriptors.ts'
import { RECORDING_SETTINGS } from './topics.ts'

type RecordingConfig = Pick<
  Config,
  'sessionRecordingDir' | 'sessionRecordingKeyFile' | 'sessionRecordingMaxBytes' | 'sessionRecordingMaxDirBytes'
>

interface RecordingDeps {
  readonly config: RecordingConfig
  readonly topics: TopicChannel
  readonly metrics: Pick<GatewayMetrics, 'families'>
  readonly log: Logger
}

interface RunningRecordings {
  describe(): object
  stop(): void
}

/** Between two measurements of the directory. */
const MEASURE_MS = 10_000
const OF = 'the recordings of sessions'

export function createSessionRecordings(deps: RecordingDeps): SessionRecordings {
  return new SessionRecordings(deps)
}

/** @throws {UserError} if there is no such key */
export function checkRecordingKey({ sessionRecordingDir, sessionRecordingKeyFile }: RecordingConfig): void {
  if (sessionRecordingDir !== '') readRecordingKey(sessionRecordingKeyFile)
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

async function startRecordings({ config, topics, metrics, log }: RecordingDeps): Promise<RunningRecordings> {
  const { sessionRecordingDir, sessionRecordingKeyFile, sessionRecordingMaxBytes, sessionRecordingMaxDirBytes } = config
  const isOn = sessionRecordingDir !== ''
  const dir = isOn ? resolve(sessionRecordingDir) : ''
  const used = new BigInt64Array(new SharedArrayBuffer(BigInt64Array.BYTES_PER_ELEMENT))
  const settings: RecordingSettings = {
    dir,
    key: isOn ? new Uint8Array(readRecordingKey(sessionRecordingKeyFile)) : undefined,
    maxBytes: sessionRecordingMaxBytes,
    maxDirBytes: sessionRecordingMaxDirBytes,
    used,
  }
  // The threads count these: they are in /metrics before there is anything to count.
  metrics.families.of<readonly string[]>(SESSION_RECORDINGS)
  const gauge = metrics.families.of(SESSION_RECORDING_BYTES)
  const size = new DirectorySize(dir, used)
  let measuredMs = Number.NEGATIVE_INFINITY
  const measure = async (): Promise<void> => {
    gauge.set(await size.measure())
  }
  const failed = (error: unknown): void =>
    log.warn('the directory of recordings cannot be read', { dir, error: errorMessage(error) })
  const ticking = {
    tick(nowMs: number): void {
      if (nowMs - measuredMs < MEASURE_MS) return
      measuredMs = nowMs
      measure().catch(failed)
    },
  }
  if (isOn) {
    makeDirectory(dir)
    await measure().catch(failed)
    addTickable(ticking)
  }
  topics.publish(RECORDING_SETTINGS, settings)
  return {
    describe: () => ({ dir, bytes: Number(Atomics.load(used, 0)) }),
    stop: () => removeTickable(ticking),
  }
}
