// Schema violations with Kubernetes paths and a fix.

import type { FieldError, FieldErrorReason } from '../json/field-error.ts'
import { type JsonSchema, MAX_INT32 } from '../json/json-schema.ts'
import { ownProperty, type SchemaView, viewOf } from '../json/schema-view.ts'
import { childPath, MOST_REPORTED, type SeverityCounts, shown } from './field-errors.ts'
import { nearestName } from './nearest-name.ts'
import { findViolations, type Violated, type Violation } from './schema-violations.ts'

export interface ShapeErrors {
  /** At most one per path, limited to what is reported; unknown fields included, as warnings. */
  readonly problems: readonly FieldError[]
  /** Number of further problems. */
  readonly more: Readonly<SeverityCounts>
  /** Whether the check stopped at MOST_ERRORS: `more` counts what was found until then, and the sets below are incomplete. */
  readonly ended: boolean
  /** Paths of all problems, reported or not. */
  readonly paths: ReadonlySet<string>
  /** Paths of values of the wrong type: their intended meaning is unknown. */
  readonly mistyped: ReadonlySet<string>
}

/** `path` is the position of `value` in its object. */
type SchemaCheck = (value: unknown, path: string) => ShapeErrors

/** Errors, reported or not, at which the check stops. Unknown fields do not count: errors may follow them. */
const MOST_ERRORS = 1_000
/** How many unknown names per object are compared with the known ones: worth it for a typo, but not for thousands. */
export const MOST_SUGGESTIONS = 20

export function createSchemaCheck(schema: JsonSchema): SchemaCheck {
  const view = viewOf(schema)
  return (value, path) => {
    const problems: FieldError[] = []
    const paths = new Set<string>()
    const mistyped = new Set<string>()
    const more = { error: 0, warning: 0 }
    const seen = { error: 0, warning: 0 }
    findViolations(view, value, path, childPath, (violation) => {
      const said = REASONS[violation.violated]
      // For lists that are maps by keys, the rules have a better message.
      const isKeyed = violation.schema['x-kubernetes-list-type'] === 'map'
      if (said === undefined || (violation.violated === 'duplicate' && isKeyed)) return true
      if (violation.violated === 'type') mistyped.add(violation.path)
      if (paths.has(violation.path)) return true
      paths.add(violation.path)
      const severity = violation.violated === 'unknown' ? 'warning' : 'error'
      // Describing an error takes longer than finding it.
      const suggests = seen.error + seen.warning < MOST_SUGGESTIONS
      if (seen[severity]++ >= MOST_REPORTED) more[severity]++
      else problems.push({ reason: said, path: violation.path, ...describe(violation, suggests), severity })
      return seen.error < MOST_ERRORS
    })
    return { problems, more, ended: seen.error >= MOST_ERRORS, paths, mistyped }
  }
}

/** Violations missing here are our own rules, with better messages. */
const REASONS: Readonly<Partial<Record<Violated, FieldErrorReason>>> = {
  type: 'FieldValueInvalid',
  enum: 'FieldValueInvalid',
  required: 'FieldValueRequired',
  unknown: 'FieldValueForbidden',
  minimum: 'FieldValueInvalid',
  maximum: 'FieldValueInvalid',
  minLength: 'FieldValueInvalid',
  maxLength: 'FieldValueInvalid',
  minItems: 'FieldValueInvalid',
  maxItems: 'FieldValueInvalid',
  maxProperties: 'FieldValueInvalid',
  duplicate: 'FieldValueDuplicate',
}

function describe(
  { violated, schema, value, name }: Violation,
  suggests: boolean,
): Pick<FieldError, 'message' | 'fix'> {
  const error = (message: string, fix: string): Pick<FieldError, 'message' | 'fix'> => ({ message, fix })
  switch (violated) {
    case 'required':
      return error('is required', `add ${name}: ${firstSentence(ownProperty(schema, name)?.description ?? '')}`)
    case 'unknown':
      return error(
        'unknown field, ignored',
        suggests ? unknownNameFix(name, Object.keys(schema.properties ?? {})) : 'remove it',
      )
    case 'type':
      return error(`is ${typeOf(value)}, not ${TYPE_NAMES.get(schema.type ?? '') ?? ''}`, typeFix(schema))
    case 'enum':
      return error(
        `${shown(value)} is not known`,
        choiceFix((schema.enum ?? []).map(String), suggests ? value : undefined),
      )
    case 'minimum':
    case 'maximum':
      return error(`${shown(value)} is out of range`, `write a number ${rangeOf(schema)}`)
    case 'minItems':
      return error('is empty', 'add at least one entry')
    case 'minLength':
      return error('is empty', `write ${firstSentence(schema.description ?? 'a value')}`)
    case 'maxLength':
      return error('is too long', `write at most ${schema.maxLength ?? 0} characters`)
    case 'maxItems':
      return error('has too many entries', `write at most ${schema.maxItems ?? 0}`)
    case 'maxProperties':
      return error('has too many entries', `write at most ${schema.maxProperties ?? 0}`)
    case 'duplicate':
      return error('is named twice', 'remove one of the two')
    default:
      return error('is not valid', 'see the description of the field')
  }
}

/** Fix for an unknown field: the known name that was probably meant, else all of them. */
export function unknownNameFix(name: string, known: readonly string[]): string {
  const near = nearestName(name, known)
  if (near !== '') return `did you mean ${near}?`
  return known.length === 0 ? 'remove it' : `remove it; known here: ${known.join(', ')}`
}

const TYPE_NAMES: ReadonlyMap<string, string> = new Map([
  ['object', 'a map'],
  ['array', 'a list'],
  ['string', 'a text'],
  ['integer', 'a whole number'],
  ['number', 'a number'],
  ['boolean', 'true or false'],
])

function typeOf(value: unknown): string {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'a list'
  if (typeof value === 'object') return 'a map'
  if (typeof value === 'string') return 'a text'
  return shown(value)
}

function typeFix(schema: SchemaView): string {
  switch (schema.type) {
    case 'object': {
      const names = Object.keys(schema.properties ?? {})
      return names.length === 0 ? 'write {}' : `write a map of ${names.join(', ')}`
    }
    case 'array':
      return 'write a list'
    case 'string':
      return 'write a text, in quotes if it looks like a number, true or false'
    case 'integer':
      return `write a whole number ${rangeOf(schema)}`
    case 'number':
      return 'write a number'
    default:
      return 'write true or false, without quotes'
  }
}

function rangeOf({ minimum = -MAX_INT32, maximum = MAX_INT32 }: SchemaView): string {
  return `from ${minimum} to ${maximum}`
}

function choiceFix(choices: readonly string[], value: unknown): string {
  const named = choices.filter((choice) => choice !== '')
  const near = typeof value === 'string' ? nearestName(value, named) : ''
  return near === '' ? `write one of ${named.join(', ')}` : `did you mean ${near}?`
}

function firstSentence(description: string): string {
  // A colon or a semicolon is inside a sentence.
  const end = description.search(/[.](\s|$)/)
  return end < 0 ? description : description.slice(0, end)
}
