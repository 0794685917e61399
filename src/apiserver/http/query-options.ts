// CreateOptions, UpdateOptions and PatchOptions, from the query (apimachinery/pkg/apis/meta/v1/validation/validation.go).

import type { FieldError } from '../../kit/api/json/field-error.ts'
import { invalid } from '../../kube/api/status.ts'
import { forbidden, invalidValue, notSupported, required, tooLong } from '../../kube/core/objects/field-error.ts'
import type { Query } from './query.ts'

export type FieldValidation = 'Strict' | 'Warn' | 'Ignore'

export interface WriteOptions {
  /** Dry run: does everything except storing the object. */
  readonly dryRun: boolean
  readonly fieldValidation: FieldValidation
  /** The field manager: `fieldManager`, or else the program in User-Agent. */
  readonly manager: string
  /** Only valid for apply. */
  readonly force: boolean
}

const META_GROUP = 'meta.k8s.io'
const MAX_MANAGER = 128
const VALIDATIONS: readonly string[] = ['', 'Ignore', 'Strict', 'Warn']
const UNPRINTABLE = /[\p{C}\p{Zl}\p{Zp}]/u

/** @throws {StatusError} 422 with all invalid options */
export function readWriteOptions(
  query: Query,
  userAgent: string,
  kind: 'CreateOptions' | 'UpdateOptions' | 'PatchOptions',
  isApply: boolean,
): WriteOptions {
  const manager = query.text('fieldManager')
  const validation = query.text('fieldValidation')
  const force = query.bool('force')
  const errors: FieldError[] = []
  if (kind === 'PatchOptions' && isApply && manager === '') {
    errors.push(required('fieldManager', 'is required for apply patch'))
  }
  if (kind === 'PatchOptions' && !isApply && force !== undefined) {
    errors.push(forbidden('force', 'may not be specified for non-apply patch'))
  }
  errors.push(...managerErrors(manager), ...dryRunErrors(query.all('dryRun')), ...validationErrors(validation))
  if (errors.length > 0) throw invalid(META_GROUP, kind, '', errors)
  return {
    dryRun: query.all('dryRun').length > 0,
    fieldValidation: validation === 'Strict' || validation === 'Ignore' ? validation : 'Warn',
    manager: manager === '' ? managerOfAgent(userAgent) : manager,
    force: isApply && force === true,
  }
}

/** Also for DeleteOptions. */
export function dryRunErrors(dryRun: readonly string[]): readonly FieldError[] {
  return dryRun.every((value) => value === 'All') ? [] : [notSupported('dryRun', dryRun, ['All'])]
}

function managerErrors(manager: string): readonly FieldError[] {
  const errors: FieldError[] = []
  if (Buffer.byteLength(manager) > MAX_MANAGER) errors.push(tooLong('fieldManager', MAX_MANAGER))
  const at = manager.search(UNPRINTABLE)
  if (at >= 0) {
    const code = (manager.codePointAt(at) ?? 0).toString(16).toUpperCase().padStart(4, '0')
    errors.push(invalidValue('fieldManager', manager, `invalid character U+${code} (at position ${at})`))
  }
  return errors
}

function validationErrors(validation: string): readonly FieldError[] {
  return VALIDATIONS.includes(validation) ? [] : [notSupported('fieldValidation', validation, VALIDATIONS)]
}

/** The program's name without unprintable characters (endpoints/handlers/create.go, prefixFromUserAgent). */
function managerOfAgent(userAgent: string): string {
  const program = userAgent.split('/', 1)[0] ?? ''
  let manager = ''
  for (const character of program) {
    if (Buffer.byteLength(manager + character) > MAX_MANAGER) break
    if (!UNPRINTABLE.test(character)) manager += character
  }
  return manager
}
