// Collects and formats the errors of this layer's checks: each names its path as Kubernetes does (`spec.servers[0].endpoint`), the problem, and the
// fix. All errors of an object are reported at once.

import type { FieldError, FieldErrorReason } from '../json/field-error.ts'

/** An error that an operator can fix: shown as one line, never with a stack. */
export class UserError extends Error {
  readonly fix: string

  constructor(message: string, fix: string) {
    super(message)
    this.name = 'UserError'
    this.fix = fix
  }
}

/** Errors, and warnings, kept per object; further ones are only counted. */
const MOST_KEPT = 1_000

/** Collects errors and warnings. A message continues the path: `is required`. */
export class FieldErrors {
  readonly found: FieldError[] = []
  /** Number of errors and warnings beyond those kept. */
  readonly more: SeverityCounts = { error: 0, warning: 0 }
  readonly #kept: SeverityCounts = { error: 0, warning: 0 }

  required(path: string, message: string, fix: string): void {
    this.#add('FieldValueRequired', path, message, fix)
  }

  invalid(path: string, message: string, fix: string): void {
    this.#add('FieldValueInvalid', path, message, fix)
  }

  duplicate(path: string, message: string, fix: string): void {
    this.#add('FieldValueDuplicate', path, message, fix)
  }

  forbidden(path: string, message: string, fix: string): void {
    this.#add('FieldValueForbidden', path, message, fix)
  }

  /** @param message in kube-apiserver's words: `Too long: may not be more than 63 bytes` */
  tooLong(path: string, message: string): void {
    this.#add('FieldValueTooLong', path, message, '')
  }

  warning(path: string, message: string, fix: string): void {
    this.#keep({ reason: 'FieldValueInvalid', path, message, fix, severity: 'warning' })
  }

  #add(reason: FieldErrorReason, path: string, message: string, fix: string): void {
    this.#keep({ reason, path, message, fix, severity: 'error' })
  }

  #keep(error: FieldError): void {
    if (this.#kept[error.severity]++ < MOST_KEPT) this.found.push(error)
    else this.more[error.severity]++
  }
}

/** Errors, and warnings, reported per object: more would go unread, and a log, a status and a response must hold them. */
export const MOST_REPORTED = 100

/** Number of problems by severity. */
export type SeverityCounts = Record<FieldError['severity'], number>

/**
 * The first problems of each severity, in order, followed by how many more there are.
 * @param others found besides `errors`, only counted
 * @param atLeast whether the check stopped early, so that there may be even more. Default: false
 */
export function reportable(
  errors: readonly FieldError[],
  others: Readonly<SeverityCounts> = { error: 0, warning: 0 },
  atLeast = false,
): readonly FieldError[] {
  const seen = { error: 0, warning: 0 }
  const reported = errors.filter(({ severity }) => seen[severity]++ < MOST_REPORTED)
  for (const severity of ['warning', 'error'] as const) {
    const more = Math.max(0, seen[severity] - MOST_REPORTED) + others[severity]
    if (more === 0) continue
    const count = `${atLeast ? 'at least ' : ''}${more}`
    const message = more === 1 ? `${count} more ${severity} is not listed` : `${count} more ${severity}s are not listed`
    const fix = 'correct those that are listed, then look again'
    reported.push({ reason: 'FieldValueInvalid', path: '', message, fix, severity })
  }
  return reported
}

/** `parent.key`, or `parent[key]` if the key is not a plain name (k8s.io/apimachinery/pkg/util/validation/field/path.go). */
export function childPath(parent: string, key: string): string {
  if (!/^[A-Za-z_][A-Za-z0-9_-]*$/.test(key)) return `${parent}[${key}]`
  return parent === '' ? key : `${parent}.${key}`
}

/** Splits a path made of childPath and `[0]` into keys and indexes: `a.b[0][x/y]` -> a, b, 0, x/y. */
export function pathSegments(path: string): string[] {
  return [...path.matchAll(/\[([^\]]*)\]|[^.[\]]+/g)].map((match) => match[1] ?? match[0])
}

/** Removes everything before the host: a password must not appear in a message. */
export function withoutPassword(url: string): string {
  // No regular expression: on `////...` it would take quadratic time.
  const start = url.indexOf('//')
  const at = url.lastIndexOf('@')
  return start < 0 || at < start + 2 ? url : `${url.slice(0, start)}//***${url.slice(at)}`
}

/** A value for a message: JSON of at most 60 characters; lists and maps by type only. */
export function shown(value: unknown): string {
  if (Array.isArray(value)) return 'a list'
  if (typeof value === 'object' && value !== null) return 'a map'
  const text = JSON.stringify(value) ?? 'nothing'
  return text.length > 60 ? `${text.slice(0, 57)}...` : text
}
