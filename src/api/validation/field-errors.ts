// How mistakes are reported: a field problem names its path as Kubernetes does (`spec.servers[0].endpoint`), what is wrong,
// and what to do about it. All mistakes of an object are reported at once.

/** A mistake in an object, or a doubt about one. */
export interface FieldProblem {
  /** `spec.servers[0].endpoint`; '' = the whole object. */
  readonly path: string
  readonly message: string
  /** What to do about it. */
  readonly fix: string
  /** An object with an error is not loaded; one with warnings is. */
  readonly severity: 'error' | 'warning'
}

/** Thrown for what an operator can mend: shown as one line, never with a stack. */
export class UserError extends Error {
  readonly fix: string

  constructor(message: string, fix: string) {
    super(message)
    this.name = 'UserError'
    this.fix = fix
  }
}

/** Collects problems under growing paths. */
export class ProblemList {
  readonly problems: FieldProblem[] = []

  error(path: string, message: string, fix: string): void {
    this.problems.push({ path, message, fix, severity: 'error' })
  }

  warning(path: string, message: string, fix: string): void {
    this.problems.push({ path, message, fix, severity: 'warning' })
  }
}

/** Errors, and warnings, that are told of one object: nobody reads more, and a log, a status and an answer have to hold them. */
export const MOST_REPORTED = 100

/** How many problems there are of each severity. */
export type ProblemCounts = Record<FieldProblem['severity'], number>

/**
 * The first problems of each severity, in their order, and behind them how many more there are.
 * @param others that were found beside `problems`, and counted only
 */
export function reportable(
  problems: readonly FieldProblem[],
  others: Readonly<ProblemCounts> = { error: 0, warning: 0 },
): readonly FieldProblem[] {
  const seen = { error: 0, warning: 0 }
  const reported = problems.filter(({ severity }) => seen[severity]++ < MOST_REPORTED)
  for (const severity of ['warning', 'error'] as const) {
    const more = Math.max(0, seen[severity] - MOST_REPORTED) + others[severity]
    if (more === 0) continue
    const message = more === 1 ? `1 more ${severity} is not listed` : `${more} more ${severity}s are not listed`
    reported.push({ path: '', message, fix: 'correct those that are listed, then look again', severity })
  }
  return reported
}

/** `parent.key`, or `parent[key]` when the key is no plain name (k8s.io/apimachinery/pkg/util/validation/field/path.go). */
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
