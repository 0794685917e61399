// Where the main thread writes: log lines, and events of the logs that are switched on.

import type { Logger } from '../../api/ports/ports.ts'
import type { AuditPolicy } from '../../core/audit/policy.ts'
import type { LineWriter } from '../../io/logs/line-writer.ts'
import type { AuditOutputs } from '../audit/outputs.ts'

export interface Outputs extends AuditOutputs {
  readonly log: Logger
  /** Lines of the access log; undefined = switched off. */
  readonly access: LineWriter | undefined
  /** undefined = every request, at level Metadata. */
  readonly auditPolicy: AuditPolicy | undefined
}
