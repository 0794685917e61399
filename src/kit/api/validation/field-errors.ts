// How the checks of this layer collect and show errors: each names its path as Kubernetes does (`spec.servers[0].endpoint`), what
// is wrong, and what to do about it. All errors of an object are reported at once.

import type { FieldError, FieldErrorReason } from '../json/field-error.ts'

/** Thrown for what an operator can fix: shown as one line, never with a stack. */
export class UserError extends Error {
  readonly fix: string

  constructor(message: string, fix: string) {
    super(message)
    this.name = 'UserError'
    this.fix = fix
  }
}

/** Errors, and warnings, of an object that are kept; further ones are only counted. */
const MOST_KEPT = 1_000

/** Collects errors and warnings. A message goes on after the path: `is required`. */
export class FieldErrors {
  readonly found: FieldError[] = []
  /** How many there were beyond those that are kept. */
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

  /** @param message is kube-apiserver's: `Too long: may not be more than 63 bytes` */
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

/** Errors, and warnings, that are reported of one object: nobody reads more, and a log, a status and an answer have to hold them. */
export const MOST_REPORTED = 100

/** How many there are of each severity. */
export type SeverityCounts = Record<FieldError['severity'], number>

/**
 * The first of each severity, in their order, and behind them how many more there are.
 * @param others that were found beside `errors`, and counted only
 * @param atLeast whether the check stopped early, so that there may be more still. Default: false
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

/** `parent.key`, or `parent[key]` when the key is not a plain name (k8s.io/apimachinery/pkg/util/validation/field/path.go). */
export function childPath(parent: string, key: string): string {
  if (!/^[A-Za-z_][A-Za-z0-9_-]*$/.test(key)) return `${parent}[${key}]`
  return parent === '' ? key : `${parent}.${key}`
}

/** The keys and indexes of a path that childPath and `[0]` made: `a.b[0][x/y]` -> a, b, 0, x/y. */
export function pathSegments(path: string): string[] {
  return [...path.matchAll(/\[([^\]]*)\]|[^.[\]]+/g)].map((match) => match[1] ?? match[0])
}

/** Without what stands before the host: a password has no place in a message. */
export function withoutPassword(url: string): string {
  // Not by a regular expression: on `////...` it would take the square of the length.
  const start = url.indexOf('//')
  const at = url.lastIndexOf('@')
  return start < 0 || at < start + 2 ? url : `${url.slice(0, start)}//***${url.slice(at)}`
}

/** A value in a message: JSON of at most 60 characters; of lists and maps only what they are. */
export function shown(value: unknown): string {
  if (Array.isArray(value)) return 'a list'
  if (typeof value === 'object' && value !== null) return 'a map'
  const text = JSON.stringify(value) ?? 'nothing'
  return text.length > 60 ? `${text.slice(0, 57)}...` : text
}
