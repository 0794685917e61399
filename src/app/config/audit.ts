// The settings of the audit log beside its path: the policy, and the rotation of the file. Names and defaults are kube-apiserver's, but for the
// size at which the file is rotated: 0 is what the audit log did before.

import { addProblem, namesOf } from './setting-problems.ts'
import { bytesBetween, integerBetween, parseSwitch, parseText } from './setting-values.ts'
import { type Setting, type SettingsReader, setting } from './settings-reader.ts'

export interface AuditConfig {
  /** '' = every request, at level Metadata. */
  readonly auditPolicyFile: string
  /** Of one body of a request or an answer that the policy wants recorded. */
  readonly auditMaxBodyBytes: number
  /** Days; 0 = any age. */
  readonly auditLogMaxage: number
  /** Files; 0 = any number. */
  readonly auditLogMaxbackup: number
  /** Mebibytes; 0 = the file is not rotated. */
  readonly auditLogMaxsize: number
  readonly auditLogCompress: boolean
}

const MOST_DAYS = 36_500
const MOST_FILES = 100_000
const MOST_MEBIBYTES = 1_000_000
const MOST_BODY_BYTES = 4 * 1024 * 1024

/** Rows of the table of settings, in the order of help. */
export const AUDIT_TABLE: { readonly [Name in keyof AuditConfig]: Setting<AuditConfig[Name]> } = {
  auditPolicyFile: setting(
    'auditPolicyFile',
    '<file>',
    '',
    parseText,
    'audit policy (audit.k8s.io/v1); default: every request at level Metadata',
  ),
  auditMaxBodyBytes: setting(
    'auditMaxBodyBytes',
    '<bytes>',
    '102400',
    bytesBetween(1024, MOST_BODY_BYTES),
    'largest body that the levels Request and RequestResponse record; of a larger one an annotation says so',
  ),
  auditLogMaxage: setting(
    'auditLogMaxage',
    '<days>',
    '366',
    integerBetween(0, MOST_DAYS),
    'how long rotated files of the audit log are kept; 0: for ever',
  ),
  auditLogMaxbackup: setting(
    'auditLogMaxbackup',
    '<n>',
    '100',
    integerBetween(0, MOST_FILES),
    'how many rotated files of the audit log are kept; 0: any number',
  ),
  auditLogMaxsize: setting(
    'auditLogMaxsize',
    '<MiB>',
    '0',
    integerBetween(0, MOST_MEBIBYTES),
    'size at which the file of the audit log is rotated; 0: never',
  ),
  auditLogCompress: setting(
    'auditLogCompress',
    '[bool]',
    'false',
    parseSwitch,
    'whether rotated files of the audit log are compressed by gzip',
  ),
}

export function readAudit(reader: SettingsReader): AuditConfig {
  const table = AUDIT_TABLE
  return {
    auditPolicyFile: reader.take(table.auditPolicyFile, ''),
    auditMaxBodyBytes: reader.take(table.auditMaxBodyBytes, 0),
    auditLogMaxage: reader.take(table.auditLogMaxage, 0),
    auditLogMaxbackup: reader.take(table.auditLogMaxbackup, 0),
    auditLogMaxsize: reader.take(table.auditLogMaxsize, 0),
    auditLogCompress: reader.take(table.auditLogCompress, false),
  }
}

/** Errors in combinations of settings. @param backends the settings that say where events go */
export function checkAudit(
  config: AuditConfig,
  backends: readonly Setting[],
  isRecorded: boolean,
  reader: SettingsReader,
): void {
  if (config.auditPolicyFile === '' || isRecorded) return
  const message = `is given without ${backends.map(({ flag }) => flag).join(' and ')}: nothing would be recorded`
  addProblem(reader, AUDIT_TABLE.auditPolicyFile, message, `give ${backends.map(namesOf).join(', or ')} too`)
}
