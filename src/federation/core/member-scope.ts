// What a read of all members asks of one of them: namespaces and names as that member has them, in the path and in field selectors.

import { type MemberName, type NameMode, splitName, splitNamespace } from '../../gateway/core/federation/names.ts'
import { type FieldTerm, parseFieldTerms } from '../../kube/core/selectors/field-terms.ts'

/** The names in a request. */
export interface AskedScope {
  /** '' = all, or none. */
  readonly namespace: string
  /** '' = not said. */
  readonly name: string
  readonly fieldSelector: string
}

/** What a resource has names of. */
export interface NamedResource {
  /** namespaces have no namespace, and are one. */
  readonly isNamespaces: boolean
  readonly isNamespaced: boolean
}

/** undefined = no object of this member is asked for. */
export type MemberScope = AskedScope | undefined

/** The name that a hash stands for; undefined = none that is known. */
export type Originals = (hashed: MemberName) => string | undefined

/** No object has this name: that there is none is told only to those who may ask for it. */
const NO_NAME = '..'

const MEMBER_FIELDS = ['metadata.namespace', 'metadata.name']

/**
 * @param originals of this member
 * @throws {SyntaxError} if the selector cannot be read
 */
export function scopeInMember(
  member: string,
  asked: AskedScope,
  resource: NamedResource & { readonly mode: NameMode },
  originals: Originals,
): MemberScope {
  const { isNamespaces, isNamespaced, mode } = resource
  if (mode === 'merged') return { ...asked, namespace: isNamespaces ? '' : asked.namespace }
  const original = (split: MemberName | undefined): string | undefined => {
    if (split?.member !== member) return undefined
    return split.hashed ? (originals(split) ?? NO_NAME) : split.name
  }
  const named = (name: string): string | undefined => {
    if (isNamespaces) return original(splitNamespace(name))
    return isNamespaced ? name : original(splitName(name))
  }
  const namespace = isNamespaces || asked.namespace === '' ? '' : original(splitNamespace(asked.namespace))
  const name = asked.name === '' ? '' : named(asked.name)
  if (namespace === undefined || name === undefined) return undefined
  const terms: FieldTerm[] = []
  for (const term of parseFieldTerms(asked.fieldSelector)) {
    if (!MEMBER_FIELDS.includes(term.field)) {
      terms.push(term)
      continue
    }
    const isName = term.field === 'metadata.name'
    const value = isName ? named(term.value) : original(splitNamespace(term.value))
    if (value !== undefined) terms.push({ ...term, value })
    // It is none of this member's: all others are.
    else if (!term.negated) return undefined
  }
  return { namespace, name, fieldSelector: terms.map(termText).join(',') }
}

function termText({ field, value, negated }: FieldTerm): string {
  return `${field}${negated ? '!=' : '='}${value.replace(/[\\,=]/g, '\\$&')}`
}
