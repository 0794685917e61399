// The --audit-policy-file: read and checked at startup, and again when it changes.

import { parse } from 'yaml'
import type { Logger } from '../../kit/api/ports.ts'
import { errorMessage } from '../../kit/api/validation/error-message.ts'
import { FieldErrors, UserError } from '../../kit/api/validation/field-errors.ts'
import { readNamedFile } from '../../pki/io/pki-files.ts'
import type { Config } from '../../process/config/config.ts'
import { ReloadedFiles } from '../../process/config/reloaded-files.ts'
import { type AuditPolicy, readAuditPolicy } from '../core/policy.ts'

const AUDIT_POLICY_FLAG = '--audit-policy-file'

/** @throws {UserError} with every error: file, field path and fix. Settings without effect are logged as a warning */
export function readAuditPolicyFile(file: string, log: Logger): AuditPolicy {
  const text = readNamedFile(AUDIT_POLICY_FLAG, file)
  let document: unknown
  try {
    // Like kube-apiserver: the last of duplicate keys wins.
    document = parse(text, { uniqueKeys: false })
  } catch (error) {
    throw new UserError(`${AUDIT_POLICY_FLAG} ${file} is not YAML: ${errorMessage(error)}`, 'correct it')
  }
  const out = new FieldErrors()
  const policy = readAuditPolicy(document, out)
  const lines = (severity: 'error' | 'warning'): string[] =>
    out.found
      .filter((one) => one.severity === severity)
      .map(({ path, message, fix }) => `${path === '' ? 'the document' : path} ${message}; ${fix}`)
  if (policy === undefined) {
    const [first = '', ...others] = lines('error')
    const fix = first.slice(first.lastIndexOf('; ') + 2)
    const all = [first.slice(0, first.lastIndexOf('; ')), ...others].reverse().join('. ')
    throw new UserError(`${AUDIT_POLICY_FLAG} ${file}: ${all}`, fix)
  }
  for (const line of lines('warning')) log.warn('the audit policy has a field without effect', { file, field: line })
  return policy
}

/** Rereads the policy when its file changes. @param put puts it in force */
export function followAuditPolicy(
  { auditPolicyFile: file }: Pick<Config, 'auditPolicyFile'>,
  log: Logger,
  put: (policy: AuditPolicy) => void,
): ReloadedFiles | undefined {
  if (file === '') return undefined
  const label = AUDIT_POLICY_FLAG.slice('--'.length)
  const read = (): void => put(readAuditPolicyFile(file, log))
  return new ReloadedFiles({ label, what: 'the audit policy', files: [file], read, log })
}
