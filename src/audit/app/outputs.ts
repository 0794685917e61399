// Destinations of audit events: the files of --audit-log-path and --control-audit-log-path, and the webhook.

import type { Logger } from '../../kit/api/ports.ts'
import { errorMessage } from '../../kit/api/validation/error-message.ts'
import { UserError } from '../../kit/api/validation/field-errors.ts'
import { type LineWriter, type LineWriterOptions, openLineWriter } from '../../kit/io/logs/line-writer.ts'
import { systemClock } from '../../kit/io/world/clock.ts'
import type { KubeCallEvents } from '../../kube/io/client-events.ts'
import type { Config } from '../../process/config/config.ts'
import { ReloadedFiles } from '../../process/config/reloaded-files.ts'
import { truncateEvent } from '../core/truncation.ts'
import { AuditWebhook } from '../io/webhook/audit-webhook.ts'
import { WebhookKubeconfig } from '../io/webhook/webhook-kubeconfig.ts'

export interface AuditOutputs {
  /** Requests to clusters; undefined = not recorded. */
  readonly audit: LineWriter | undefined
  /** Requests to the embedded API server, or actions on CRDs on this machine; may be the same as `audit`. */
  readonly controlAudit: LineWriter | undefined
  /** undefined = none. */
  readonly auditWebhook: OpenWebhook | undefined
}

export interface OpenWebhook {
  readonly writer: AuditWebhook
  readonly kubeconfig: WebhookKubeconfig
}

const STDOUT = 1
const MEBIBYTE = 1024 * 1024
const DAY_MS = 86_400_000
const FLAG = '--audit-webhook-config-file'

/**
 * @param outlets closes them
 * @throws {UserError} if a file cannot be opened, or the webhook's kubeconfig is unusable
 */
export function openAuditOutputs(
  config: Config,
  log: Logger,
  calls: KubeCallEvents,
  outlets: AsyncDisposableStack,
): AuditOutputs {
  const open = (path: string): LineWriter | undefined => {
    const writer = openAuditLog(path, config, log)
    return writer && outlets.adopt(writer, () => writer.close())
  }
  const auditWebhook = openWebhook(config, log, calls)
  outlets.defer(() => auditWebhook?.writer.close())
  const audit = auditBackends(open(config.auditLogPath), auditWebhook?.writer)
  return { audit, controlAudit: openControlAudit(config, audit, auditWebhook?.writer, open), auditWebhook }
}

/** Rereads the kubeconfig when it changes. */
export function followWebhookKubeconfig({ kubeconfig }: OpenWebhook, log: Logger): ReloadedFiles {
  const label = FLAG.slice('--'.length)
  const read = (): void => kubeconfig.read()
  return new ReloadedFiles({ label, what: 'the kubeconfig of the audit webhook', files: [kubeconfig.file], read, log })
}

function openWebhook(config: Config, log: Logger, calls: KubeCallEvents): OpenWebhook | undefined {
  if (config.auditWebhookConfigFile === '') return undefined
  const kubeconfig = new WebhookKubeconfig(config.auditWebhookConfigFile)
  const writer = new AuditWebhook({
    access: kubeconfig,
    initialBackoffMs: config.auditWebhookInitialBackoffMs,
    bufferSize: config.auditWebhookBatchBufferSize,
    maxBatchSize: config.auditWebhookBatchMaxSize,
    maxWaitMs: config.auditWebhookBatchMaxWaitMs,
    throttle: config.auditWebhookBatchThrottleEnable
      ? { perSecond: config.auditWebhookBatchThrottleQps, burst: config.auditWebhookBatchThrottleBurst }
      : undefined,
    maxEventBytes: config.auditWebhookTruncateMaxEventSize,
    calls,
    clock: systemClock,
    log,
    random: Math.random,
  })
  return { writer, kubeconfig }
}

/** One writer per file: lines of two writers would interleave. */
function openControlAudit(
  config: Config,
  audit: LineWriter | undefined,
  webhook: LineWriter | undefined,
  open: (path: string) => LineWriter | undefined,
): LineWriter | undefined {
  const { source, controlAuditLogPath, auditLogPath } = config
  // For CRDs: actions on them on this machine.
  if (source !== 'embedded') return source === 'kubernetes' ? audit : undefined
  const own = controlAuditLogPath !== '' && controlAuditLogPath !== auditLogPath
  return own ? auditBackends(open(controlAuditLogPath), webhook) : audit
}

function openAuditLog(path: string, config: Config, log: Logger): LineWriter | undefined {
  if (path === '') return undefined
  try {
    const writer = path === '-' ? openLineWriter(STDOUT) : openLineWriter(path, auditFileOptions(path, config, log))
    const { auditLogTruncateMaxEventSize: maxBytes } = config
    return maxBytes === 0 ? writer : truncatingWriter(writer, maxBytes)
  } catch (error) {
    throw new UserError(
      `cannot open the audit log ${path}: ${errorMessage(error)}`,
      'name a file in a directory that exists',
    )
  }
}

function auditFileOptions(path: string, config: Config, log: Logger): LineWriterOptions {
  const { auditLogMaxsize, auditLogMaxage, auditLogMaxbackup, auditLogCompress } = config
  const onError = (error: string): void => log.error('the audit log cannot be written as it should be', { path, error })
  if (auditLogMaxsize === 0) return { onError }
  const rotation = {
    maxBytes: auditLogMaxsize * MEBIBYTE,
    maxAgeMs: auditLogMaxage * DAY_MS,
    maxFiles: auditLogMaxbackup,
    compress: auditLogCompress,
    now: () => systemClock.now(),
  }
  return { onError, rotation }
}

// Backends of the audit log: the file, with or without truncated events, and the webhook.

/** Drops events that are still too large. @param maxBytes per event */
function truncatingWriter(writer: LineWriter, maxBytes: number): LineWriter {
  let tooLarge = 0
  return {
    write: (line) => {
      const event = truncateEvent(line, maxBytes)
      if (event === undefined) tooLarge++
      else writer.write(event)
    },
    dropped: () => writer.dropped() + tooLarge,
    flush: () => writer.flush(),
    close: () => writer.close(),
  }
}

/** Each receives every event. Events lost by the webhook do not count as dropped here: they have their own metric. */
function auditBackends(file: LineWriter | undefined, webhook: LineWriter | undefined): LineWriter | undefined {
  if (webhook === undefined) return file
  const all = file === undefined ? [webhook] : [file, webhook]
  return {
    write: (line) => {
      for (const one of all) one.write(line)
    },
    dropped: () => file?.dropped() ?? 0,
    flush: async () => {
      await Promise.all(all.map((one) => one.flush()))
    },
    close: async () => {
      await Promise.all(all.map((one) => one.close()))
    },
  }
}
