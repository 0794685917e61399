// Where the main thread writes: log lines, and events of the logs that are switched on.

import type { Logger } from '../../api/ports/ports.ts'
import type { AuditPolicy } from '../../core/audit/policy.ts'
import type { LineWriter } from '../../io/logs/line-writer.ts'
import type { OpenWebhook } from '../audit/outputs.ts'

export interface Outputs {
  readonly log: Logger
  /** Lines of the access log; undefined = switched off. */
  readonly access: LineWriter | undefined
  readonly audit: LineWriter | undefined
  /** undefined = every request, at level Metadata. */
  readonly auditPolicy: AuditPolicy | undefined
  /** Of the embedded API server; may be the same as `audit`. */
  readonly controlAudit: LineWriter | undefined
  /** One of those that `audit` writes to; undefined = none. */
  readonly auditWebhook: OpenWebhook | undefined
}
