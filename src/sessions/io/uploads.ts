// Moves recordings to a bucket: the directory is where they wait for it, whatever happens to the gateway. One at a time, the oldest first; a file is removed
// once the store shows that it has it.

import { unlink } from 'node:fs/promises'
import { join } from 'node:path'
import type { Clock, Logger } from '../../kit/api/ports.ts'
import { errorMessage } from '../../kit/api/validation/error-message.ts'
import { penaltyMs } from '../../kit/core/penalties/penalties.ts'
import { RareWarnings } from '../../kit/io/logs/rare-warnings.ts'
import { readRecordingName } from '../core/recording/file-name.ts'
import type { UploadResult } from '../core/recording/recording-settings.ts'
import { WaitingFiles } from '../core/recording/waiting-files.ts'
import type { S3Bucket, Upload } from './s3-bucket.ts'
import type { SpooledFile } from './spool.ts'

interface UploadsOptions {
  readonly dir: string
  /** All objects have it; '' = none, otherwise it ends with a slash. */
  readonly prefix: string
  readonly bucket: Pick<S3Bucket, 'put'>
  readonly clock: Clock
  readonly log: Logger
  random(): number
  counted(result: UploadResult): void
}

/** After a failure; each further one in a row waits twice as long. */
const RETRY = { firstMs: 10_000, growth: 2, longestMs: 300_000 }
const WARN_EVERY_MS = 60_000

export class Uploads {
  readonly #options: UploadsOptions
  readonly #files = new WaitingFiles()
  readonly #warnings: RareWarnings
  readonly #stopped = new AbortController()
  #running: Promise<void> | undefined
  /** In a row. */
  #failures = 0
  #retryMs = Number.NEGATIVE_INFINITY
  #error = ''

  constructor(options: UploadsOptions) {
    this.#options = options
    this.#warnings = new RareWarnings(options, 'warn', WARN_EVERY_MS)
  }

  /** How long the one that has waited longest waits, as of the last look; 0 = none waits. */
  get oldestMs(): number {
    return Math.max(0, this.#options.clock.now() - this.#files.oldestMs)
  }

  describe(): object {
    return { waiting: this.#files.count, error: this.#error }
  }

  /** Files are about to be looked for. */
  looking(): void {
    this.#files.looking()
  }

  /** A file was found in the directory. */
  see(file: SpooledFile): void {
    this.#files.see(file)
  }

  /** All files were found. Uploads what waits, in the background. */
  looked(): void {
    this.#files.looked()
    if (this.#running === undefined && this.#options.clock.monotonic() >= this.#retryMs) this.#start()
  }

  /** Resolves when nothing is being uploaded. */
  get idle(): Promise<void> {
    return this.#running ?? Promise.resolve()
  }

  /** With other credentials it may go better. */
  retry(): void {
    this.#failures = 0
    this.#retryMs = Number.NEGATIVE_INFINITY
  }

  /** Uploads what waits once more, and ends. @param look in the directory @param withinMs for all of it */
  async stop(look: () => Promise<unknown>, withinMs: number): Promise<void> {
    const deadline = setTimeout(() => this.#stopped.abort(), withinMs)
    await this.idle
    if (this.#failures === 0 && !this.#stopped.signal.aborted) {
      await look().catch(() => undefined)
      this.looked()
      await this.idle
    }
    clearTimeout(deadline)
    this.#stopped.abort()
  }

  #start(): void {
    this.#running = this.#uploadAll().finally(() => {
      this.#running = undefined
    })
  }

  /** Until one fails. */
  async #uploadAll(): Promise<void> {
    const { dir, prefix, bucket, log, counted } = this.#options
    for (const name of this.#files.next()) {
      const day = readRecordingName(name)?.day ?? ''
      const file = join(dir, name)
      const upload = await bucket.put(file, `${prefix}${day}/${name}`, this.#stopped.signal)
      const result = upload.kind === 'stored' ? await remove(file) : upload
      if (result.kind === 'failed') return this.#failed(name, result)
      if (result.kind === 'gone') continue
      counted('uploaded')
      if (this.#error !== '') log.info('recordings of sessions are uploaded again')
      this.#failures = 0
      this.#error = ''
    }
  }

  #failed(name: string, { why, fix }: Upload & { readonly kind: 'failed' }): void {
    if (this.#stopped.signal.aborted) return
    const { clock, counted, random } = this.#options
    counted('failed')
    this.#files.failed(name)
    this.#error = why
    // Half of it is random, so that replicas do not retry in sync.
    const waitMs = penaltyMs(RETRY, this.#failures++) * (0.5 + random() / 2)
    this.#retryMs = clock.monotonic() + waitMs
    const more = { ...(fix !== '' && { fix }), retryInMs: Math.round(waitMs) }
    this.#warnings.warn('a recording of a session could not be uploaded, and stays in the directory', {
      file: name,
      error: why,
      ...more,
    })
  }
}

async function remove(file: string): Promise<Upload> {
  try {
    await unlink(file)
  } catch (error) {
    // Another gateway with the same directory may have been faster.
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return { kind: 'gone' }
    return { kind: 'failed', why: `it is in the store, but cannot be removed: ${errorMessage(error)}`, fix: '' }
  }
  return { kind: 'stored' }
}
