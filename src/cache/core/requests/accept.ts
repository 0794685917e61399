// In which form kube-apiserver would answer a read: it takes the first clause of Accept that it can satisfy, after ordering them
// (apiserver/pkg/endpoints/handlers/negotiation/negotiate.go, and munnerz/goautoneg in the version that it has). Where its answer depends on what it was
// started with, or is none that is made here, the read is forwarded.

import type { AskedForm } from '../bytes/answer-form.ts'
import { PARTIAL, PARTIAL_LIST } from '../bytes/answers.ts'
import type { ReadRequest } from './read-request.ts'

export interface NegotiationHead {
  /** The first value of Accept; '' = none. */
  readonly accept: string
  readonly userAgent: string
}

interface Clause {
  readonly type: string
  readonly subtype: string
  readonly parameters: ReadonlyMap<string, string>
  readonly q: number
}

/** Go sorts up to so many by insertion; more are in an order of their own. */
const MOST_CLAUSES = 12
const PROTOBUF = 'vnd.kubernetes.protobuf'
/** In the order in which kube-apiserver looks at them. YAML is never answered here, and CBOR is there only if it was switched on. */
const SUBTYPES = ['json', 'yaml', PROTOBUF, 'cbor', 'cbor-seq'] as const
const NONE: ReadonlyMap<string, string> = new Map()
const PLAIN_QUALITY = /^(?:0(?:\.[0-9]{1,3})?|1(?:\.0{1,3})?)$/
const WHOLE_JSON: AskedForm = { encoding: 'json', partial: false }
/** They get indented JSON (negotiate.go, isPrettyPrint). */
const PRETTY_AGENTS = ['curl', 'Wget', 'Mozilla/5.0']

/**
 * @param hasProtobuf whether the resource has it: custom resources have none but of their metadata
 * @param hasTables whether Tables are written here
 * @returns undefined = to be forwarded
 */
export function negotiateRead(
  kind: ReadRequest['kind'],
  { accept, userAgent }: NegotiationHead,
  hasProtobuf: boolean,
  hasTables = false,
): AskedForm | undefined {
  const found = accept === '' ? WHOLE_JSON : negotiated(kind, accept, hasProtobuf)
  if (found?.table !== undefined && !hasTables) return undefined
  return found?.encoding === 'json' && PRETTY_AGENTS.some((agent) => userAgent.startsWith(agent)) ? undefined : found
}

function negotiated(kind: ReadRequest['kind'], accept: string, hasProtobuf: boolean): AskedForm | undefined {
  const clauses = clausesOf(accept)
  if (clauses?.some(isRouted) !== true) return undefined
  for (const { type, subtype, parameters } of clauses) {
    for (const offered of SUBTYPES) {
      const isMeant = type === 'application' ? subtype === offered || subtype === '*' : type === '*' && subtype === '*'
      if (!isMeant) continue
      const outcome = outcomeOf(kind, offered, parameters, hasProtobuf)
      if (outcome !== 'next') return outcome === 'forwarded' ? undefined : outcome
    }
  }
  return undefined
}

/** Its router takes no `application/*`, and asks for one type that it has, or for any, before anything else is looked at (go-restful, matchesAccept). */
function isRouted({ type, subtype }: Clause): boolean {
  return type === '*' ? subtype === '*' : type === 'application' && (subtype === 'json' || subtype === PROTOBUF)
}

/** next = kube-apiserver does not take the clause for this type (negotiate.go, acceptMediaTypeOptions). */
function outcomeOf(
  kind: ReadRequest['kind'],
  offered: (typeof SUBTYPES)[number],
  parameters: ReadonlyMap<string, string>,
  hasProtobuf: boolean,
): AskedForm | 'next' | 'forwarded' {
  const stream = parameters.get('stream') ?? ''
  if (stream !== '' && (stream !== 'watch' || offered === 'yaml')) return 'next'
  const version = parameters.get('sv') ?? ''
  if (version !== '' && version !== 'v1') return 'next'
  const conversion = conversionOf(kind, offered, parameters)
  if (conversion === 'next' || conversion === 'forwarded') return conversion
  const partial = conversion === 'partial'
  if (offered === 'json' && parameters.get('pretty') === '1') return 'forwarded'
  if (conversion === 'table')
    return { ...WHOLE_JSON, table: parameters.get('v') === 'v1' ? 'meta.k8s.io/v1' : 'meta.k8s.io/v1beta1' }
  if (offered === 'json') return { encoding: 'json', partial }
  if (offered === PROTOBUF) return hasProtobuf || partial ? { encoding: 'protobuf', partial } : 'next'
  return 'forwarded'
}

/** What the object is to be made into (handlers/rest.go, AllowsMediaTypeTransform). */
function conversionOf(
  kind: ReadRequest['kind'],
  offered: (typeof SUBTYPES)[number],
  parameters: ReadonlyMap<string, string>,
): 'none' | 'partial' | 'table' | 'next' | 'forwarded' {
  if (!parameters.has('as') && !parameters.has('g') && !parameters.has('v')) return 'none'
  const version = parameters.get('v')
  if (parameters.get('g') !== 'meta.k8s.io' || (version !== 'v1' && version !== 'v1beta1')) return 'next'
  const as = parameters.get('as')
  if (as === 'Table') return offered === 'json' ? 'table' : offered === 'yaml' ? 'forwarded' : 'next'
  if (as !== PARTIAL.kind && as !== PARTIAL_LIST.kind) return 'next'
  // The list for one object, or the object for a list, is refused.
  return version === 'v1' && as === (kind === 'list' ? PARTIAL_LIST : PARTIAL).kind ? 'partial' : 'forwarded'
}

/** As goautoneg.ParseAccept orders them; undefined = that cannot be told. */
function clausesOf(accept: string): readonly Clause[] | undefined {
  const parts = accept.split(',')
  if (parts.length > MOST_CLAUSES) return undefined
  const clauses: Clause[] = []
  for (const part of parts) {
    const clause = clauseOf(trimmed(part))
    if (clause === undefined) continue
    if (Number.isNaN(clause.q)) return undefined
    // Insertion, since its order is none that any sorting agrees on.
    let at = clauses.length
    for (; at > 0; at--) {
      const before = clauses[at - 1]
      if (before === undefined || !isLess(clause, before)) break
    }
    clauses.splice(at, 0, clause)
  }
  return clauses
}

function isLess(a: Clause, b: Clause): boolean {
  if (a.q > b.q) return true
  if (a.type !== '*' && b.type === '*') return true
  return a.subtype !== '*' && b.subtype === '*'
}

/** @returns undefined = goautoneg skips it; q NaN = who knows how Go reads it */
function clauseOf(part: string): Clause | undefined {
  const [range = '', ...rest] = part.split(';')
  const [type = '', subtype = '', ...more] = range.split('/')
  if (more.join('/') !== '') return undefined
  // goautoneg reads a lone star as any type; the router does not know it.
  if (subtype === '' && trimmed(type) === '*') return { type: '*', subtype: '*', parameters: NONE, q: Number.NaN }
  if (subtype === '') return undefined
  const parameters = new Map<string, string>()
  let q = 1
  for (const item of rest) {
    const [name = '', value = '', ...behind] = item.split('=')
    if (value === '' || behind.join('=') !== '') continue
    if (trimmed(name) === 'q') q = PLAIN_QUALITY.test(value) ? Number(value) : Number.NaN
    else parameters.set(trimmed(name), trimmed(value))
  }
  return { type: trimmed(type), subtype: trimmed(subtype), parameters, q }
}

/** Without spaces at its ends, and only those, as goautoneg does. */
function trimmed(text: string): string {
  let start = 0
  let end = text.length
  while (start < end && text[start] === ' ') start++
  while (end > start && text[end - 1] === ' ') end--
  return text.slice(start, end)
}
