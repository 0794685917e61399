// spec.audit with its defaults.

import { complete, fieldOf, type Schema, type ValueOf } from '../../../kit/api/json/json-schema.ts'
import { AUDIT_SCHEMA } from '../../api/upstream-cluster/audit-schema.ts'
import type { CompiledSessionRecording } from './compiled-cluster.ts'

type Audit = ValueOf<typeof AUDIT_SCHEMA>

/** undefined = sessions are not recorded. */
export function compileSessionRecording(
  audit: Audit | undefined,
  schema: Schema<Audit> = AUDIT_SCHEMA,
): CompiledSessionRecording | undefined {
  if (audit?.sessions === undefined) return undefined
  const { record, portForwards, whenFull } = complete(fieldOf(schema, 'sessions'), audit.sessions)
  return { input: record === 'InputAndOutput', portForwards, isRequired: whenFull === 'Block' }
}
