// The Accept header: form and encoding of the response
// (apiserver/pkg/endpoints/handlers/negotiation/negotiate.go; clauses are ordered as in munnerz/goautoneg).

import { type StatusError, statusError } from '../../kube/api/status.ts'
import type { Encoding } from './answer.ts'

/** The form of the object; `partial` is PartialObjectMetadata, or its list. */
type AnswerForm = 'object' | 'table' | 'partial' | 'discovery-v2' | 'discovery-v2beta1'

export interface Negotiated extends Encoding {
  readonly as: AnswerForm
}

/** One media type that a client accepts. */
export interface AcceptClause {
  readonly type: string
  readonly subtype: string
  /** Lower-case names. */
  readonly parameters: ReadonlyMap<string, string>
  /** 0 to 1. */
  readonly q: number
}

/** Forms of objects; discovery documents have only the conversions to APIGroupDiscoveryList. */
const OBJECT_FORMS: ReadonlyMap<string, AnswerForm> = new Map([
  ['meta.k8s.io/v1/Table', 'table'],
  ['meta.k8s.io/v1/PartialObjectMetadata', 'partial'],
  ['meta.k8s.io/v1/PartialObjectMetadataList', 'partial'],
])

const DISCOVERY_FORMS: ReadonlyMap<string, AnswerForm> = new Map([
  ['apidiscovery.k8s.io/v2/APIGroupDiscoveryList', 'discovery-v2'],
  ['apidiscovery.k8s.io/v2beta1/APIGroupDiscoveryList', 'discovery-v2beta1'],
])

/** The forms that a path offers besides the plain document: those of objects, aggregated discovery, none, or all. */
export type OfferedForms = 'objects' | 'discovery' | 'plain' | 'any'

const FORMS: Readonly<Record<OfferedForms, ReadonlyMap<string, AnswerForm>>> = {
  objects: OBJECT_FORMS,
  discovery: DISCOVERY_FORMS,
  plain: new Map(),
  any: new Map([...OBJECT_FORMS, ...DISCOVERY_FORMS]),
}

/** The error if `negotiate` finds nothing. */
export function notAcceptable(): StatusError {
  return statusError('NotAcceptable', 'only the following media types are accepted: application/json, application/yaml')
}

/** Interactive programs, which get indented JSON by default (negotiate.go, isPrettyPrint). */
const PRETTY_AGENTS = ['curl', 'Wget', 'Mozilla/5.0']

/**
 * The first clause that can be satisfied; one with an unknown conversion is skipped, not refused. An empty
 * header means JSON. undefined = none: 406 Not Acceptable.
 */
export function negotiate(accept: string, endpoint: OfferedForms = 'any'): Negotiated | undefined {
  if (accept === '') return { as: 'object', format: 'json', pretty: false }
  const forms = FORMS[endpoint]
  for (const clause of acceptClauses(accept)) {
    const format = formatOf(clause)
    const as = formOf(clause, forms)
    if (format !== undefined && as !== undefined) {
      return { as, format, pretty: clause.parameters.get('pretty') === '1' }
    }
  }
  return undefined
}

/**
 * Whether the client wants indented JSON, if Accept doesn't say.
 * @param parameter the first value of the query parameter `pretty`; undefined = absent
 */
export function wantsPretty(parameter: string | undefined, userAgent: string): boolean {
  if (parameter !== undefined && parameter !== '') return ['1', 't', 'T', 'TRUE', 'true', 'True'].includes(parameter)
  return PRETTY_AGENTS.some((prefix) => userAgent.startsWith(prefix))
}

/** The clauses by preference: by q, then plain types before wildcards, then in the order of the header. */
export function acceptClauses(accept: string): AcceptClause[] {
  const clauses: AcceptClause[] = []
  for (const part of accept.split(',')) {
    const clause = parseClause(part)
    if (clause !== undefined && clause.q > 0) clauses.push(clause)
  }
  return clauses.sort((a, b) => b.q - a.q || wildcards(a) - wildcards(b))
}

function wildcards({ type, subtype }: AcceptClause): number {
  return (type === '*' ? 2 : 0) + (subtype === '*' ? 1 : 0)
}

/** undefined = not a media range. */
function parseClause(part: string): AcceptClause | undefined {
  const [range = '', ...rest] = part.split(';')
  const [type = '', subtype = type === '*' ? '*' : '', more] = range.trim().toLowerCase().split('/')
  if (type === '' || subtype === '' || more !== undefined) return undefined
  const parameters = new Map<string, string>()
  let q = 1
  for (const item of rest) {
    const equals = item.indexOf('=')
    const name = (equals < 0 ? item : item.slice(0, equals)).trim().toLowerCase()
    const value = equals < 0 ? '' : unquoted(item.slice(equals + 1).trim())
    if (name === 'q') q = quality(value)
    else parameters.set(name, value)
  }
  return { type, subtype, parameters, q }
}

function unquoted(value: string): string {
  return value.length >= 2 && value.startsWith('"') && value.endsWith('"') ? value.slice(1, -1) : value
}

/** RFC 9110 section 12.4.2; anything but a number counts as 1, as in goautoneg. */
function quality(text: string): number {
  const q = Number(text)
  return text === '' || Number.isNaN(q) ? 1 : Math.min(Math.max(q, 0), 1)
}

function formatOf({ type, subtype }: AcceptClause): 'json' | 'yaml' | undefined {
  if (type === '*') return subtype === '*' ? 'json' : undefined
  if (type !== 'application') return undefined
  if (subtype === '*' || subtype === 'json') return 'json'
  return subtype === 'yaml' ? 'yaml' : undefined
}

/** undefined = an unknown conversion, stream or server version. */
function formOf({ parameters }: AcceptClause, forms: ReadonlyMap<string, AnswerForm>): AnswerForm | undefined {
  const stream = parameters.get('stream') ?? ''
  if (stream !== '' && stream !== 'watch') return undefined
  const kind = parameters.get('as')
  const group = parameters.get('g')
  const version = parameters.get('v')
  if (kind === undefined && group === undefined && version === undefined) return 'object'
  return forms.get(`${group ?? ''}/${version ?? ''}/${kind ?? ''}`)
}
